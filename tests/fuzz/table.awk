# Adds up what runs of fuzzing came to, by reader, as rows of a page (tests/fuzz/run.sh). Fields are divided by tabs.
#   first file:   corpus, reader, files of tests/fuzz/corpus
#   second file:  when, commit, reader, inputs, edges, MB, seconds of processor time, seconds, findings: a line for a turn
# `from`: the first line of the second file that counts; `only`: names between blanks, or blanks alone for all.

# A number with a comma before every three digits.
function grouped(number, text) {
  text = sprintf("%.0f", number)
  while (match(text, /[0-9][0-9][0-9][0-9]+/)) text = substr(text, 1, RSTART + RLENGTH - 4) "," substr(text, RSTART + RLENGTH - 3)
  return text
}
function row(name, inputs, edges, files, mb, processor) {
  printf "| %s | %s | %s | %s | %s | %s | %s |\n", name, grouped(inputs), edges, files, mb, grouped(processor),
         grouped(processor > 0 ? inputs / processor : 0)
}

FNR == NR { files[$2] = $3; order[++count] = $2; next }
FNR < from || (only ~ /[^ ]/ && index(only, " " $3 " ") == 0) { next }
{
  inputs[$3] += $4
  if ($5 > 0) edges[$3] = $5  # of the last turn, which had what those before have kept
  if ($6 > mb[$3]) mb[$3] = $6
  processor[$3] += $7
  seconds += $8
  if (turns++ == 0) begin = $1
  end = $1
  if (!($2 in commits)) { commits[$2] = 1; built = built (built == "" ? "" : ", ") $2 }
}
END {
  print "| reader | inputs | edges | files | MB | seconds | a second |"
  print "|---|---|---|---|---|---|---|"
  for (i = 1; i <= count; ++i) {
    name = order[i]
    if (!(name in inputs)) continue
    row("`" name "`", inputs[name], grouped(edges[name]), files[name], mb[name], processor[name])
    all += inputs[name]; all_files += files[name]; all_processor += processor[name]
    if (mb[name] > all_mb) all_mb = mb[name]
  }
  row("all", all, "", grouped(all_files), all_mb, all_processor)
  printf "\n%d turns, %s seconds, ended from %s to %s; commits %s\n", turns, grouped(seconds), begin, end, built
}
