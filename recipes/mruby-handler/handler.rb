# The note's kind of handler: each request builds 20 strings and a hash, and keeps nothing.
lambda do |env|
  values = {}
  20.times { |i| values["key #{i}"] = "#{env["PATH_INFO"]} value #{i}" }
  body = values.map { |key, value| "#{key}: #{value}\n" }.join
  [200, { "content-type" => "text/plain" }, [body]]
end
