#pragma once
/// The words of a sentence of running text, with punctuation apart as in the Penn Treebank ([key-value-predict 5.2]).
/// Nothing is rewritten: quotes and brackets stay the characters that they are.
///
///   apart always        brackets, double quotes, dashes ("--" and those of Unicode), "...", ! ? ; * and the like
///   apart unless inside , : between digits ("1,000", "10:30"), & @ # _ = between letters or digits ("AT&T")
///   period              at the end of the sentence alone, or before what closes there: "Mr.", "U.S." and "3.5" stay
///   single quotes       before and behind a word, not inside one ("o'clock"), and not in 'em, 'n', 'til, 'tis, '90s
///   clitics             's 'm 'd 're 've 'll n't, with ' or U+2019, whatever their case: "doesn't" is "does", "n't"
///   % $ and others      apart from the number: "$5" is "$", "5", and "50%" is "50", "%"
///
/// "<unk>", "@-@", "@,@" and "@.@" stay whole.

#include <functional>
#include <string_view>

namespace engram::data {

/// Calls `visit` with the words of a UTF-8 sentence; each is a part of it. The last period of one that has not `ended`
/// is no sentence's end, and stays at its word.
void split_penn_words(std::string_view sentence, bool ended, const std::function<void(std::string_view word)>& visit);
inline void split_penn_words(std::string_view sentence, const std::function<void(std::string_view word)>& visit) {
  split_penn_words(sentence, true, visit);
}

}  // namespace engram::data
