// Parses JSON with nlohmann-json, as events without a document.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

namespace wattwire {

// Passes the events of a JSON text to `reader`. Returns false if the text is not JSON or if the
// reader rejects it. Does not use `json::sax_parse`, which also compiles the parsers of four binary
// formats and doubles the compile time of a small cell.
template <class Reader>
bool parse_json(std::string_view text, Reader* reader) {
  if (text.substr(0, 3) == "\xEF\xBB\xBF")
    return false;  // the library would accept this byte order mark
  using Input = decltype(nlohmann::detail::input_adapter(text.data(), text.data()));
  return nlohmann::detail::parser<nlohmann::json, Input>(
             nlohmann::detail::input_adapter(text.data(), text.data() + text.size()))
      .sax_parse(reader, true);
}

}  // namespace wattwire
