#pragma once
/// The papers' lists, as they were when the program was built (apps/embed.cmake).

#include <string_view>

namespace engram {

/// all-attention.json.
std::string_view all_attention_paper();
/// key-value-predict.json.
std::string_view key_value_predict_paper();
/// product-key.json.
std::string_view product_key_paper();
/// transformer-xl.json.
std::string_view transformer_xl_paper();

}  // namespace engram
