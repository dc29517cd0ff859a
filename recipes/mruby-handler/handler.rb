# The note's kind of handler: each request builds 20 strings and a hash, and keeps nothing. The strings are longer than
# the 23 bytes that mruby keeps within an object, so each of them is a block of malloc's.
lambda do |env|
  values = {}
  20.times { |i| values["key #{i}"] = "value #{i} of the request to #{env["PATH_INFO"]}" }
  body = values.map { |key, value| "#{key}: #{value}\n" }.join
  [200, { "content-type" => "text/plain" }, [body]]
end
