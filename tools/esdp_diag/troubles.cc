#include "tools/esdp_diag/troubles.h"

namespace esdp_diag {
namespace {

std::string_view NextLine(std::string_view& rest) {
  const size_t end = rest.find('\n');
  const std::string_view line = rest.substr(0, end);
  rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
  return line;
}

std::string WithoutStars(std::string_view line) {
  std::string plain;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line.substr(i, 2) == "**") {
      ++i;
    } else {
      plain += line[i];
    }
  }
  return plain;
}

Trouble WithHeading(std::string_view heading) {
  const size_t colon = heading.find(": ");
  if (colon == std::string_view::npos) return {std::string(heading), "", ""};
  return {std::string(heading.substr(0, colon)), std::string(heading.substr(colon + 2)), ""};
}

void EndWithOneLineFeed(std::string& text) {
  while (text.ends_with("\n\n")) text.pop_back();
}

}  // namespace

std::vector<Trouble> ReadPage(std::string_view page) {
  std::vector<Trouble> troubles;
  bool fenced = false;
  while (!page.empty()) {
    const std::string_view line = NextLine(page);
    if (line.starts_with("## ") && !fenced) {
      troubles.push_back(WithHeading(line.substr(3)));
    } else if (line.starts_with("```")) {
      fenced = !fenced;
    } else if (!troubles.empty() && !line.starts_with("<!--")) {
      std::string& text = troubles.back().text;
      if (line.empty() && text.empty()) continue;
      text += (fenced ? "    " + std::string(line) : WithoutStars(line)) + "\n";
    }
  }
  for (Trouble& trouble : troubles) EndWithOneLineFeed(trouble.text);
  return troubles;
}

}  // namespace esdp_diag
