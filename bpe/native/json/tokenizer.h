// The long lists of a tokenizer.json, its vocabulary and its merges: read as
// bpe/formats/token_text.py does, where the rest of the file is read too.
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "encode/vocabulary.h"
#include "json/reader.h"
#include "table/buffer.h"
#include "text/utf8.h"

namespace bpe {

// The byte of each character of GPT-2's alphabet, -1 for others: bpe/byte_alphabet.py.
inline constexpr auto kByteOfCharacter = [] {
  std::array<int16_t, 324> bytes{};
  bytes.fill(-1);
  for (int16_t byte = 0, hidden = 256; byte < 256; ++byte) {
    const bool printable = (byte > 0x20 && byte < 0x7F) || (byte > 0xA0 && byte != 0xAD);
    bytes[static_cast<size_t>(printable ? byte : hidden++)] = byte;
  }
  return bytes;
}();

struct TokenizerLists {
  Vocabulary names;              // the token of each id as it is spelled
  std::vector<uint32_t> merges;  // left, right, result, left, ...
  std::string head;              // the file, in which both lists are empty

  // The bytes that the names spell in GPT-2's alphabet; those in `own` are their own bytes. Nothing
  // where another one holds a character that is not of the alphabet.
  std::optional<ByteStrings> tokens(const std::vector<int64_t>& own) const {
    const std::vector<bool> is_own = names.flags(own);
    ByteStrings tokens;
    for (uint32_t id = 0; id < names.size(); ++id) {
      const auto name = names[id];
      if (is_own[id]) tokens.data.insert(tokens.data.end(), name.begin(), name.end());
      for (const uint8_t *p = name.data(), *end = p + name.size(); p != end && !is_own[id];) {
        const Decoded step = decode_utf8(p, end);
        const int16_t byte = step.code_point < kByteOfCharacter.size()
                                 ? kByteOfCharacter[step.code_point]
                                 : int16_t{-1};
        if (byte < 0) return std::nullopt;
        tokens.data.push_back(static_cast<uint8_t>(byte));
        p += step.size;
      }
      tokens.end();
    }
    return tokens;
  }
};

class TokenizerReader : public JsonReader {
 public:
  using JsonReader::JsonReader;

  // Nothing where the file is not a tokenizer with ids as bpe/formats/token_text.py demands them,
  // names of at least one character, no one twice, and merges after the vocabulary.
  std::optional<TokenizerLists> read() {
    const uint8_t* const begin = p_;
    const auto skip = [&] {
      Value ignored;
      return value(ignored);
    };
    skip_space();
    const bool is_read = object([&](std::string_view of_file) {
      if (of_file != "model") return skip();
      return object([&](std::string_view of_model) {
        if (of_model != "vocab" && of_model != "merges") return skip();
        head_.append(begin + copied_, p_);
        if (!(of_model == "vocab" ? vocab() : merge_list())) return false;
        head_ += of_model == "vocab" ? "{}" : "[]";
        copied_ = p_ - begin;
        return true;
      });
    });
    if (!is_read || !blank() || !names_ || !merges_) return std::nullopt;
    head_.append(begin + copied_, end_);
    return TokenizerLists{*std::move(names_), *std::move(merges_), std::move(head_)};
  }

 private:
  struct Name {
    uint32_t id;
    size_t begin, end;
  };

  bool vocab() {
    std::vector<uint8_t> text;
    std::vector<Name> names;
    const auto entry = [&] {
      Value name, id;
      if (!append_string(name, text) || !colon() || !value(id) || id.kind != Kind::integer)
        return false;
      Name& added = names.emplace_back(Name{0, names.empty() ? 0 : names.back().end, text.size()});
      const std::string_view digits = id.chars();
      return added.begin != added.end &&
             std::from_chars(digits.data(), digits.data() + digits.size(), added.id).ec ==
                 std::errc();
    };
    if (!items('{', '}', entry)) return false;
    if (!std::ranges::is_sorted(names, {}, &Name::id)) std::ranges::sort(names, {}, &Name::id);
    ByteStrings column;
    for (const Name& name : names) {
      if (name.id + size_t{1} < column.offsets.size() || name.id >= 4 * names.size() + (1u << 20))
        return false;
      column.offsets.resize(name.id + size_t{1}, column.offsets.back());
      column.data.insert(column.data.end(), text.data() + name.begin, text.data() + name.end);
      column.end();
    }
    try {
      names_.emplace(column.data, column.offsets);
    } catch (const std::invalid_argument&) {  // a name is there twice
      return false;
    }
    return true;
  }

  bool merge_list() {
    std::vector<uint8_t> both;
    merges_.emplace();
    return names_ && items('[', ']', [&] {
             Value name;
             size_t parts = 0, left = 0;
             both.clear();
             if (p_ != end_ && *p_ == '"') {  // of older files: "left right"
               if (!append_string(name, both)) return false;
               if (std::ranges::count(both, ' ') != 1) return false;
               const auto space = std::ranges::find(both, ' ');
               left = static_cast<size_t>(space - both.begin());
               both.erase(space);
             } else if (!items('[', ']',
                               [&] {
                                 left = both.size();
                                 return ++parts <= 2 && append_string(name, both);
                               }) ||
                        parts != 2) {
               return false;
             }
             const Bytes bytes(both);
             for (const auto part : {bytes.first(left), bytes.subspan(left), bytes}) {
               merges_->push_back(names_->find(part));
               if (merges_->back() == Vocabulary::kNone) return false;
             }
             return true;
           });
  }

  bool append_string(Value& name, std::vector<uint8_t>& out) {
    if (!string(name) || name.lone_surrogate) return false;
    name.append_to(out);
    return true;
  }

  std::optional<Vocabulary> names_;
  std::optional<std::vector<uint32_t>> merges_;
  std::string head_;
  ptrdiff_t copied_ = 0;  // bytes of the file that are in the head, or in a list
};

}  // namespace bpe
