#pragma once
/// Cutting running text into sentences ([key-value-predict 5.2]). A sentence ends after ".", "!" or "?", and the
/// quotes and brackets that close behind it, where white space and an upper-case letter, a digit or an opening quote
/// follow. It does not end at a period after a title or another abbreviation of a small list ("Mr.", "e.g."), after one
/// that numbers follow ("No. 5", "p. 7"), or after initials ("J. Smith", "J.R.R. Tolkien", "U.S. Army"). Rules by hand
/// miss some ends and find some that are none: "in the U.S. The" stays one sentence.

#include <functional>
#include <string_view>

namespace engram::data {

/// Calls `visit` with the sentences of a UTF-8 text, one after the other, without white space at their ends; blank text
/// has none. Line ends are white space like any other.
void split_sentences(std::string_view text, const std::function<void(std::string_view sentence)>& visit);

/// Whether a sentence, trimmed, would end where it does whatever followed: after ".", "!" or "?" and what closes behind
/// it, unless the period is that of an abbreviation or of initials.
bool ends_sentence(std::string_view sentence);

}  // namespace engram::data
