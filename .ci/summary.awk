# summary.awk -- reads CTest's JUnit file, names what was skipped and what failed, and ends with the line
# `N passed, N failed, N skipped`. Exits 1 when something failed.
#
# CTest calls a test skipped as soon as its output matches the skip expression, even if it went on and failed; such a
# test counts as failed here.

function attribute(name, line) {
  if (!match(line, name "=\"[^\"]*\"")) return ""
  return unescape(substr(line, RSTART + length(name) + 2, RLENGTH - length(name) - 3))
}

function unescape(text) {
  gsub(/&quot;/, "\"", text); gsub(/&apos;/, "'", text); gsub(/&lt;/, "<", text); gsub(/&gt;/, ">", text)
  gsub(/&amp;/, "\\&", text)
  return text
}

/<testcase / {
  name = attribute("name", $0)
  status = attribute("status", $0)
  skipped = status == "disabled"
  reason = skipped ? "disabled" : ""
  ended_badly = 0
}
/<skipped message="SKIP_/ { skipped = 1 }  # the other messages: the program is missing
match($0, /SKIPPED: .*/) && reason == "" {
  reason = unescape(substr($0, RSTART + 9))
  sub(/<\/system-out>.*/, "", reason)
}
/^test cases:.*failed/ || /^\.*assertions:.*failed/ { ended_badly = 1 }
/<\/testcase>/ {
  if (skipped && !ended_badly) {
    skips[++skip_count] = name ": " (reason == "" ? "no reason given" : reason)
  } else if (status == "run" && !skipped) {
    ++pass_count
  } else {
    failures[++fail_count] = name (status == "notrun" && !skipped ? " (could not be run)" : "")
  }
}
END {
  for (i = 1; i <= skip_count; ++i) print "skipped: " skips[i]
  for (i = 1; i <= fail_count; ++i) print "FAILED: " failures[i]
  printf "%d passed, %d failed, %d skipped\n", pass_count, fail_count, skip_count
  exit fail_count > 0
}
