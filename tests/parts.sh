# Sourced by tests/run.sh, tests/sanitized.sh, tests/nightly.sh and .ci/run: names the parts of a check, and prints at its
# end the minutes of processor time that each took, which do not grow much while the machine does other things.
#   begin_part "Building"     the part before it, if any, has ended
#   compare_machine           before the work, once a compiler is there
#   end_parts 32              prints the table; warns above 32 minutes of the reference machine, and fails above a
#                             quarter more. 0: no budget
# A script that another one calls prints no table: its parts go into the caller's (ENGRAM_PARTS, a file).

# What the sample below takes on the machine on which the budgets were measured: two cores of an EPYC 7003 at rest, GCC 12.
# A machine that takes twice as long may use twice the budget. It tells speed within a quarter: on one shared machine
# the means of two runs were 4.4 s and 5.0 s, and single looks took from 4.0 to 6.0 s.
parts_reference_seconds=4.0
parts_scratch=$(mktemp -d "${TMPDIR:-/tmp}/engram-parts.XXXXXX")
trap 'rm -rf "$parts_scratch"' EXIT
parts_name=""
parts_owner=""
if [[ -z ${ENGRAM_PARTS:-} ]]; then
  parts_owner=yes
  export ENGRAM_PARTS=$parts_scratch/table
fi
touch "$ENGRAM_PARTS" "$ENGRAM_PARTS.machine"

# parts_now: seconds of processor time of this shell's children that have ended. No command substitution may take it,
# which would ask for those of a new shell.
look_at_processor() {
  times >"$parts_scratch/times"
  parts_now=$(awk 'NR == 2 { for (i = 1; i <= 2; i++) { split($i, t, /[ms]/); all += 60 * t[1] + t[2] }
                             printf "%.2f", all }' "$parts_scratch/times")
}

close_part() {
  look_at_processor
  if [[ -n $parts_name ]]; then
    awk -v name="$parts_name" -v used="$parts_now" -v before="$parts_used" -v wall="$SECONDS" -v began="$parts_began" \
      'BEGIN { printf "%s\t%.2f\t%d\n", name, used - before, wall - began }' >>"$ENGRAM_PARTS"
  fi
  parts_used=$parts_now
  parts_began=$SECONDS
  parts_name=""
}

begin_part() {
  close_part
  # Once a compiler is known to be there.
  if [[ -s $ENGRAM_PARTS.machine ]]; then compare_machine; fi
  parts_began=$SECONDS
  parts_name=$1
  printf '\n== %s (after %d s)\n' "$1" "$SECONDS"
}

# Writes down how long this machine takes to compile a sample now. Work beside this one on a shared machine comes and
# goes, so every part begins with a look, and the mean of all counts. No part is charged for it.
compare_machine() {
  cat >"$parts_scratch/sample.cpp" <<'SAMPLE'
#include <algorithm>
#include <map>
#include <regex>
#include <string>
#include <vector>
int main(int argc, char** argv) {
  std::map<std::string, std::vector<std::string>> words;
  const std::regex word("[a-z]+(-[a-z]+)*");
  for (int i = 1; i < argc; ++i) {
    const std::string line = argv[i];
    for (std::sregex_iterator at(line.begin(), line.end(), word), end; at != end; ++at) words[at->str()].push_back(line);
  }
  for (auto& [name, lines] : words) std::ranges::sort(lines);
  return static_cast<int>(words.size());
}
SAMPLE
  look_at_processor
  local before=$parts_now
  "${CXX:-c++}" -std=c++20 -O2 -c "$parts_scratch/sample.cpp" -o "$parts_scratch/sample.o"
  look_at_processor
  awk -v before="$before" -v after="$parts_now" 'BEGIN { printf "%.2f\n", after - before }' >>"$ENGRAM_PARTS.machine"
  parts_used=$(awk -v used="${parts_used:-0}" -v before="$before" -v after="$parts_now" \
    'BEGIN { printf "%.2f", used + after - before }')
}

end_parts() {
  close_part
  if [[ -z $parts_owner ]]; then return 0; fi
  local code=0
  if [[ $1 != 0 ]]; then compare_machine; fi
  local slowness
  slowness=$(awk -v reference="$parts_reference_seconds" '{ sum += $1 }
    END { mean = NR > 0 ? sum / NR / reference : 1; printf "%.2f", (mean > 1 ? mean : 1) }' "$ENGRAM_PARTS.machine")
  echo
  awk -F '\t' -v budget="$1" -v slowness="$slowness" '
    BEGIN { printf "%-58s %10s %8s\n", "minutes by part", "processor", "wall" }
    { printf "%-58s %10.1f %8.1f\n", $1, $2 / 60, $3 / 60; used += $2 / 60; wall += $3 / 60 }
    END {
      printf "%-58s %10.1f %8.1f\n", "all", used, wall
      if (budget == 0) exit 0
      printf "budget: %.1f minutes of processor time", budget * slowness
      if (slowness > 1)
        printf " (%d, on a machine that compiles %.2f times as fast as this one did; %.1f would be used there)", budget,
          slowness, used / slowness
      printf "\n"
      if (used <= budget * slowness) exit 0
      print "The parts above must fit the budget: make one of them quicker, or a test of every night (tests/nightly.sh)."
      if (used > 1.25 * budget * slowness) exit 1
      print "They are over it by less than a quarter, which the sample may be wrong by: a warning alone."
    }' "$ENGRAM_PARTS" || code=$?
  return "$code"
}
