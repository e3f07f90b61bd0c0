-- Redis runs Lua 5.1 with these globals.
std = "lua51"
max_line_length = 100
read_globals = {"KEYS", "ARGV", "redis", "cjson", "cmsgpack", "struct", "bit"}
-- A file in includes/ defines what the scripts that name it use; a script uses what it includes.
files["includes/*.lua"] = {ignore = {"211", "113"}}
files["*-*.lua"] = {ignore = {"113"}}
