# 20 strings and a hash for each request, and one call of a method written in C. The answer has 220 bytes.
def handle
  values = {}
  20.times { |i| values["key #{i}"] = "value #{i}" }
  "#{user_agent} asked for #{values.size} values"
end
