# 2000 sessions, never more and never fewer. A request builds 20 strings and renews one session. Now and then a request
# is an import: many rows, of which a few become sessions; all others are garbage when it ends, and collected at once,
# so that nothing waits for mruby's collector.
#
# So what lives is always the same, but it was made in between what dies.

# Not Random: every run does the same, by one and the same sequence.
$state = 1
def below(limit)
  $state = ($state * 1103515245 + 12345) & 0x7fffffff
  ($state >> 8) % limit
end

def session
  "s" * (30 + below(100))
end

$sessions = Array.new(2000) { session }
def renew_session
  $sessions[below($sessions.size)] = session
end

$requests = 0
def handle
  $requests += 1
  values = {}
  20.times { |i| values[i] = "v" * (30 + below(200)) }
  renew_session
  return unless $requests % IMPORT_EVERY == IMPORT_EVERY / 2
  import
  GC.start
end

# In lists of up to 100,000 rows: mruby 3.3 has no longer arrays than 131,072.
def import
  lists = []
  IMPORT_ROWS.times do |i|
    lists << [] if i % 100_000 == 0
    lists.last << "r" * (30 + below(300))
    renew_session if i % 500 == 0
  end
end

# Bytes in sessions, after all garbage is collected: what is resident beyond it is nobody's data.
def live
  GC.start
  $sessions.inject(0) { |sum, kept| sum + kept.size }
end
