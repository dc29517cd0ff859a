# The note's program: threads that do nothing but exist.
count = Integer(ENV.fetch("REFIT_OPERATIONS"))

# A thread that has not run yet has not touched its stack, so each says that it runs before it goes to sleep.
running = Queue.new
count.times { Thread.new { running << true; sleep } }
count.times { running.pop }

$stdout.puts "#{count} threads run"
$stdout.flush
sleep
