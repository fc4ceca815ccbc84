#pragma once
/// What Unicode 14.0 says of a character, as far as rules of words ask (moses_words.hpp). The same on every machine: no
/// locale is asked.

namespace engram::data {

bool is_alphabetic(char32_t letter);    ///< the property Alphabetic
bool is_numeric(char32_t letter);       ///< the categories Nd, Nl and No: digits, and numbers such as "½" and "Ⅳ"
bool is_alphanumeric(char32_t letter);  ///< Alphabetic, or of the category Nd
bool is_lowercase(char32_t letter);     ///< the property Lowercase
bool is_white_space(char32_t letter);   ///< the property White_Space

}  // namespace engram::data
