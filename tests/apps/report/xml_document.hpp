#pragma once
/// A small strict reader of XML without namespaces, comments or CDATA: enough to say whether a drawing is well-formed
/// and what is in it. https://www.w3.org/TR/xml/

#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace engram::harness {

struct XmlElement {
  std::string name;
  std::map<std::string, std::string> attributes;
  std::string text;  ///< its own, with entities resolved
  std::vector<XmlElement> children;

  /// Of this name, anywhere below.
  std::vector<const XmlElement*> all(std::string_view wanted) const {
    std::vector<const XmlElement*> found;
    for (const XmlElement& child : children) {
      if (child.name == wanted) found.push_back(&child);
      for (const XmlElement* below : child.all(wanted)) found.push_back(below);
    }
    return found;
  }
  double number(const std::string& attribute) const { return std::stod(attributes.at(attribute)); }
};

class XmlReader {
 public:
  explicit XmlReader(std::string_view rest) : rest_(rest) {}

  XmlElement document() {
    if (rest_.starts_with("<?xml")) rest_.remove_prefix(rest_.find("?>") + 2);
    skip_space();
    XmlElement root = element();
    skip_space();
    require(rest_.empty(), "nothing after the root");
    return root;
  }

 private:
  void require(bool valid, const char* rule) const {
    if (!valid)
      throw std::runtime_error(std::string("XML must have ") + rule + " at: " + std::string(rest_.substr(0, 60)));
  }
  void skip_space() {
    while (!rest_.empty() && std::string_view(" \n\t").find(rest_[0]) != std::string_view::npos) rest_.remove_prefix(1);
  }
  std::string take_until(std::string_view ends) {
    const std::size_t length = rest_.find_first_of(ends);
    require(length != std::string_view::npos && length > 0, "a name");
    std::string taken(rest_.substr(0, length));
    rest_.remove_prefix(length);
    return taken;
  }
  std::string resolved(std::string_view raw) const {
    static const std::map<std::string_view, char> kEntities{{"amp", '&'},  {"lt", '<'},  {"gt", '>'},  {"quot", '"'},
                                                            {"#39", '\''}, {"#45", '-'}, {"#160", ' '}};
    std::string out;
    while (!raw.empty()) {
      require(raw[0] != '<' && (static_cast<unsigned char>(raw[0]) >= 0x20 || raw[0] == '\n' || raw[0] == '\t'),
              "characters that need no escape");
      if (raw[0] != '&') {
        out += raw[0];
        raw.remove_prefix(1);
        continue;
      }
      const std::size_t end = raw.find(';');
      require(end != std::string_view::npos && kEntities.contains(raw.substr(1, end - 1)), "known entities");
      out += kEntities.at(raw.substr(1, end - 1));
      raw.remove_prefix(end + 1);
    }
    return out;
  }
  XmlElement element() {
    require(rest_.starts_with("<"), "an element");
    rest_.remove_prefix(1);
    XmlElement made;
    made.name = take_until(" \n/>");
    for (skip_space(); !rest_.starts_with(">") && !rest_.starts_with("/>"); skip_space()) {
      const std::string name = take_until("= >");
      require(rest_.starts_with("=\""), "attributes in quotes");
      rest_.remove_prefix(2);
      const std::size_t end = rest_.find('"');
      require(end != std::string_view::npos, "closed quotes");
      require(made.attributes.emplace(name, resolved(rest_.substr(0, end))).second, "each attribute once");
      rest_.remove_prefix(end + 1);
    }
    if (rest_.starts_with("/>")) {
      rest_.remove_prefix(2);
      return made;
    }
    rest_.remove_prefix(1);
    while (true) {
      const std::size_t next = rest_.find('<');
      require(next != std::string_view::npos, "every element closed");
      made.text += resolved(rest_.substr(0, next));
      rest_.remove_prefix(next);
      if (!rest_.starts_with("</")) {
        made.children.push_back(element());
        continue;
      }
      const std::string end = "</" + made.name + ">";
      require(rest_.starts_with(end), "end tags in order");
      rest_.remove_prefix(end.size());
      return made;
    }
  }

  std::string_view rest_;
};

/// Throws std::runtime_error for what is not well-formed.
inline XmlElement read_xml(std::string_view document) { return XmlReader(document).document(); }

}  // namespace engram::harness
