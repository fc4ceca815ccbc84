#pragma once
/// Writing a training session into a checkpoint and reading it back, so that the run goes on as if it had never
/// stopped: weights, optimiser, random stream, readers, caches of training and validation.
///
///   <parameter>                         weights
///   optimizer/<parameter>.<what>        state of the optimiser
///   state/train.<piece>.<layer>.hidden  caches of each piece of a batch, [B / split, C, width], absent while empty
///   state/valid.<layer>.hidden          caches of the short validation
///   average/<parameter>.weight_mean      mean of the weights, absent before it has begun
///   metadata                            checkpoint_format.hpp

#include <filesystem>
#include <string>
#include <vector>

#include "apps/run/training/session.hpp"
#include "nn/checkpoint.hpp"

namespace engram {

/// Why a session is saved: at a step where every run of its configuration is, or where only this one was interrupted.
enum class SaveReason : unsigned char { due, interrupted };

/// Replaces the file as a whole, which rank 0 writes; all ranks call it, and where it throws, all throw, as together()
/// says; its folder is made if it is missing. Throws FileError when it cannot be written, and NotFiniteError for
/// numbers that are not finite and for weights above a million; the file is as it was then.
void save_session(const std::filesystem::path& path, TrainingSession& session, SaveReason reason = SaveReason::due);
/// Writes a checkpoint without what only a continuation needs: parameters, configuration, vocabulary.
void save_model(const std::filesystem::path& path, TrainingSession& session);

/// The step that a checkpoint's run ends with, as far as it was known then: fine-tuning may have begun on a plateau.
std::int64_t last_step_of(const CheckpointFile& file, const RunConfig& config);

/// Sets a fresh session to what the file holds. Returns what is different from an exact continuation (other data,
/// another batch or split), one sentence each. A session with another max_span is set as SpanResize does it. Throws
/// FileError when the file does not fit the session's model and optimiser.
std::vector<std::string> load_session(const CheckpointFile& file, TrainingSession& session);

}  // namespace engram
