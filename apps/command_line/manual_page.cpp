#include "apps/command_line/manual_page.hpp"

#include <algorithm>
#include <string_view>

#include "core/error.hpp"

namespace engram {
namespace {

/// Text that roff takes as it is: no escapes, dashes as they are typed, and no line that begins a request.
std::string roff(std::string_view written) {
  std::string escaped;
  for (const char byte : written) {
    const bool begins_line = escaped.empty() || escaped.back() == '\n';
    if (begins_line && (byte == '.' || byte == '\'')) escaped += "\\&";
    if (byte == '\\')
      escaped += "\\e";
    else if (byte == '-')
      escaped += "\\-";
    else if (byte == '\'')
      escaped += "\\(aq";
    else if (byte == '`')
      escaped += "\\(ga";
    else if (byte == '^')
      escaped += "\\(ha";
    else if (byte == '~')
      escaped += "\\(ti";
    else
      escaped += byte;
  }
  return escaped;
}

std::string bold(std::string_view written) { return text("\\fB", roff(written), "\\fR"); }
std::string italic(std::string_view written) { return text("\\fI", roff(written), "\\fR"); }

/// "--out FOLDER", "RUN" or "[--x]": the name bold, the value in italics.
std::string usage_part(const std::string& part) {
  if (part.starts_with("--")) {
    const std::size_t end = std::min(part.find(' '), part.size());
    return bold(part.substr(0, end)) + (end < part.size() ? " " + italic(part.substr(end + 1)) : "");
  }
  return italic(part);
}

std::string head_of_option(const OptionDescription& option) {
  std::string head;
  for (const std::string& name : option.names) head += (head.empty() ? "" : ", ") + bold(name);
  if (!option.value.empty()) head += (head.empty() ? "" : " ") + italic(option.value);
  return head;
}

std::string entry(const std::string& head, const std::string& meaning) {
  return text(".TP\n", head, "\n", roff(meaning), "\n");
}

std::string section(const std::string& title) { return text(".SH ", title, "\n"); }

/// The end of the help, a paragraph for each of its lines.
std::string description_of(const CommandDescription& described) {
  std::string all;
  for (std::size_t begin = 0; begin < described.footer.size();) {
    const std::size_t end = std::min(described.footer.find('\n', begin), described.footer.size());
    if (end > begin)
      all +=
          text(all.empty() ? section("DESCRIPTION") : ".PP\n", roff(described.footer.substr(begin, end - begin)), "\n");
    begin = end + 1;
  }
  return all;
}

std::string beginning(const CommandDescription& described, const std::string& page, const std::string& typed,
                      const std::string& version) {
  std::string capitals = page;
  std::ranges::transform(capitals, capitals.begin(),
                         [](char letter) { return letter >= 'a' && letter <= 'z' ? letter - 'a' + 'A' : letter; });
  std::string all = text(".TH ", roff(capitals), " 1 \"\" \"Engram ", version, "\" \"Engram\"\n", section("NAME"),
                         roff(page), " \\- ", roff(described.summary), "\n", section("SYNOPSIS"), bold(typed));
  for (const std::string& part : described.usage) all += " " + usage_part(part);
  return all + "\n";
}

std::string options_of(const CommandDescription& described) {
  std::string all;
  for (const auto& [title, options] : {std::pair("ARGUMENTS", &described.arguments), {"OPTIONS", &described.options}}) {
    if (options->empty()) continue;
    all += section(title);
    for (const OptionDescription& option : *options) all += entry(head_of_option(option), option.meaning);
  }
  return all;
}

}  // namespace

std::string manual_page(const CommandDescription& program, const std::string& version,
                        const std::vector<ManualSection>& sections) {
  std::string page =
      beginning(program, program.name, program.name, version) + description_of(program) + options_of(program);
  page += section("COMMANDS");
  std::string group;
  for (const CommandDescription& command : program.commands) {
    if (command.group != group) page += text(".SS ", roff(command.group), "\n");
    group = command.group;
    page += entry(bold(command.name), command.summary);
  }
  for (const ManualSection& one : sections) {
    page += section(one.title);
    for (const auto& [head, said] : one.entries) page += entry(bold(head), said);
  }
  std::string others;
  for (const CommandDescription& command : program.commands)
    others += text(others.empty() ? "" : " ,\n", ".BR ", roff(program.name + "-" + command.name), " (1)");
  return page + section("SEE ALSO") + others + "\n";
}

std::string manual_page(const CommandDescription& program, const CommandDescription& command,
                        const std::string& version) {
  const std::string page = program.name + "-" + command.name, typed = program.name + " " + command.name;
  return beginning(command, page, typed, version) + description_of(command) + options_of(command) +
         section("SEE ALSO") + text(".BR ", roff(program.name), " (1)\n");
}

}  // namespace engram
