# puma's configuration, and an application without a framework: rows of text of all lengths for each request, as a
# template makes them, of which a page of 16 KiB is the answer. Every hundredth request is a report: more rows, for a moment.
bind "tcp://127.0.0.1:#{ENV.fetch('REFIT_PORT_HTTP')}"
workers 2
threads 8, 8
preload_app! if File.read("preload").strip == "on"

PAGE = 16_384
TABLE = Array.new(20_000) { |i| "row #{i}: " + "x" * (i * 7919 % 300) }.freeze
served = 0

app do |env|
  served += 1
  rows = Array.new(served % 100 == 0 ? 20_000 : 400) { |i| "#{TABLE[i]} of #{env['PATH_INFO']}\n" }
  page = rows.join[0, PAGE].ljust(PAGE)
  [200, { "Content-Type" => "text/plain", "Content-Length" => PAGE.to_s }, [page]]
end
