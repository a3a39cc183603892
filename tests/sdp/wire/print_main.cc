// Prints messages as the core's own decoder has them: reads one in hex from each line of standard
// input, and answers with a line each, its text or "no message: FIELD REASON".

#include <iostream>
#include <string>
#include <vector>

#include "impl/sdp/wire/codec.h"
#include "impl/sdp/wire/text.h"

int main() {
  namespace wire = esdp::sdp::wire;
  for (std::string line; std::getline(std::cin, line);) {
    std::vector<std::byte> bytes;
    for (size_t i = 0; i + 1 < line.size(); i += 2) {
      bytes.push_back(static_cast<std::byte>(std::stoul(line.substr(i, 2), nullptr, 16)));
    }
    wire::Message message;
    const auto error = wire::Decode(bytes, message);
    std::cout << (error ? std::string("no message: ") + error->field + " " + error->reason
                        : wire::ToText(message))
              << "\n";
  }
}
