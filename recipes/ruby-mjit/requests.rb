# A small Rack-like application and a loop that asks it: every request passes five middlewares, a router and one of
# HANDLERS handlers, each a class with methods of its own, as a Rails application is many methods of which each does
# little. Prints the times of the requests after the warm-up by percentile, then a processor-bound benchmark's time.
# usage: ruby requests.rb REQUESTS HANDLERS

# The compilers that this Ruby has; a Ruby without one has no such module.
MJIT = defined?(RubyVM::MJIT) && RubyVM::MJIT.enabled? && RubyVM::MJIT
RJIT = defined?(RubyVM::RJIT) && RubyVM::RJIT.enabled? && RubyVM::RJIT

requests, handlers = ARGV.map { |word| Integer(word) }
WARM_UP = 3 # times as many requests, not measured

# Each handler: five methods that take a request's parameters apart and build an answer.
APPLICATION = (0...handlers).map do |n|
  eval <<~RUBY, binding, "handler_#{n}.rb", 1
    Class.new do
      def call(env) = [200, headers(env), [body(parameters(env))]]
      def parameters(env) = env["QUERY_STRING"].split("&").to_h { |pair| pair.split("=", 2) }
      def headers(env) = { "content-type" => "text/plain", "x-handler" => "#{n}", "x-path" => env["PATH_INFO"] }
      def body(parameters) = parameters.map { |name, value| line(name, value) }.join
      def line(name, value) = "\#{name}: \#{sum(value)} of #{n}\n"
      def sum(value)
        total = #{n}
        value.each_byte { |byte| total = (total * 31 + byte) % 65_521 }
        total
      end
    end.new
  RUBY
end

class Router
  def call(env)
    name = env["PATH_INFO"][%r{\A/handler/(\d+)\z}, 1]
    return [404, {}, []] unless name
    APPLICATION.fetch(name.to_i).call(env)
  end
end

class Middleware
  def initialize(application) = @application = application

  def call(env)
    status, headers, body = @application.call(before(env))
    [status, after(headers), body]
  end
end

class Length < Middleware
  def before(env) = env
  def after(headers) = headers.merge("x-length" => headers.length.to_s)
end

class Head < Middleware
  def before(env) = env["REQUEST_METHOD"] == "HEAD" ? env.merge("REQUEST_METHOD" => "GET") : env
  def after(headers) = headers
end

class Cookies < Middleware
  def before(env) = env.merge("cookies" => env["HTTP_COOKIE"].to_s.split("; ").to_h { |cookie| cookie.split("=", 2) })
  def after(headers) = headers.merge("set-cookie" => "seen=1")
end

class Downcase < Middleware
  def before(env) = env
  def after(headers) = headers.transform_keys(&:downcase)
end

class Runtime < Middleware
  def before(env) = env.merge("began" => env["number"])
  def after(headers) = headers.merge("x-runtime" => "0")
end

STACK = [Runtime, Downcase, Cookies, Head, Length].inject(Router.new) { |inner, outer| outer.new(inner) }

def request(number, handlers)
  {
    "REQUEST_METHOD" => number.even? ? "GET" : "HEAD", "PATH_INFO" => "/handler/#{number * 7 % handlers}",
    "QUERY_STRING" => "name=refit&page=#{number % 10}&q=scattered", "HTTP_COOKIE" => "session=#{number}; theme=dark",
    "number" => number
  }
end

def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

# The bodies of the answers, as one number.
def digest(sum, body) = body.each_byte.inject(sum) { |total, byte| (total * 33 + byte) & 0xffff_ffff }

def warm_up(requests, handlers) = (WARM_UP * requests).times { |number| STACK.call(request(number, handlers)) }

# MJIT compiles in the background, and merges when nothing is left to compile; both have to be over. Some methods are
# compiled once more when they have run as compiled, so it takes a second time.
if MJIT
  2.times do
    warm_up(requests, handlers)
    MJIT.pause(wait: true)
    MJIT.resume
  end
  MJIT.pause(wait: true)
else
  2.times { warm_up(requests, handlers) }
end

times = Array.new(requests)
sum = 0
requests.times do |number|
  env = request(number, handlers)
  began = now
  status, _, body = STACK.call(env)
  times[number] = now - began
  abort "request #{number}: status #{status}" unless status == 200
  sum = digest(sum, body.first) if (number % 97).zero?
end
times.sort!

# The smallest time that so many per cent of the requests did not exceed, as ab(1) has it.
[50, 66, 75, 80, 90, 95, 98, 100].each do |percent|
  puts format("p%d %.3f us", percent, times[(requests * percent / 100.0).ceil - 1] * 1e6)
end
puts "#{requests} requests, digest #{sum}"
# It counts what it compiles only with --rjit-stats, which slows it down; how much code there is, it always knows.
if RJIT
  code = ObjectSpace.each_object(RJIT::Compiler).first.instance_variable_get(:@cb)
  puts "RJIT wrote #{code.instance_variable_get(:@write_pos)} bytes of code"
end

# Nothing but calls and arithmetic, in few methods.
def fib(n) = n < 2 ? n : fib(n - 1) + fib(n - 2)

def sieve(most)
  prime = Array.new(most + 1, true)
  (2..Integer.sqrt(most)).each { |n| (n * n).step(most, n) { |i| prime[i] = false } if prime[n] }
  prime.drop(2).count(true)
end

100.times { fib(8) + sieve(1000) }
if MJIT
  MJIT.resume
  100.times { fib(8) + sieve(1000) }
  MJIT.pause(wait: true)
end
began = now
result = fib(26) + sieve(50_000)
puts format("cpu %.3f ms, result %d", (now - began) * 1e3, result)
