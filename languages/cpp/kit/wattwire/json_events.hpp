// The one place that asks nlohmann-json to parse: as events, without a document.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

namespace wattwire {

// Hands the events of one JSON text to `reader`; false where the text is none, or the reader said
// so. Not by `json::sax_parse`: that compiles the readers of four binary formats as well, which
// takes as long as the rest of a small cell.
template <class Reader>
bool parse_json(std::string_view text, Reader* reader) {
  if (text.substr(0, 3) == "\xEF\xBB\xBF") return false;  // the library would pass over this mark
  using Input = decltype(nlohmann::detail::input_adapter(text.data(), text.data()));
  return nlohmann::detail::parser<nlohmann::json, Input>(
             nlohmann::detail::input_adapter(text.data(), text.data() + text.size()))
      .sax_parse(reader, true);
}

}  // namespace wattwire
