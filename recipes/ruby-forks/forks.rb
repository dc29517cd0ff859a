# 1000 threads as in ruby-threads; then, asked for it, processes that do nothing.
threads = Integer(ENV.fetch("THREADS"))
running = Queue.new
threads.times { Thread.new { running << true; sleep } }
threads.times { running.pop }

children = []
trap("TERM") do
  Process.kill(:KILL, *children) unless children.empty?
  Process.waitall
  exit! true
end

answer = File.open("answer", "r+")
$stdout.puts "#{threads} threads run"
$stdout.flush

# "r+" on a fifo never blocks and never sees its end: whoever asks may come and go.
count = Integer(File.open("ask", "r+").gets)
from_children, to_parent = IO.pipe
count.times do
  children << fork do
    trap("TERM", "DEFAULT")
    to_parent.syswrite("x")
    sleep
  end
end
from_children.readpartial(1) while (count -= 1) >= 0

File.write("children", children.join("\n") + "\n")
answer.puts "#{children.size} children run"
answer.flush
sleep
