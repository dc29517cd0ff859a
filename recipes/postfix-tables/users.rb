# A table as a script: lookup gets a key, and returns what the table has for it, or nil where it has nothing.
# What it raises is a lookup that failed, and Postfix tries again later.
def lookup(key)
  user, domain = key.split("@")
  return nil unless domain == "load.test" && user.to_i.to_s == user
  "box#{user}@box.test"
end
