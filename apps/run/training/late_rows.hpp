#pragma once
/// Rows of tables that are late (optimizer.table_mode = deferred), beside the checkpoint of a run that was interrupted.
/// A checkpoint holds rows that are up to date, so that any program can read it; bringing them there at a step where an
/// undisturbed run would not have done so changes the last bits of what follows. So they are kept as they were, too:
///
///   RUN_DIR/checkpoint/late-rows.safetensors   TableOptimizer::visit_late_rows; metadata "engram.step"

#include <cstdint>
#include <filesystem>
#include <string>

#include "apps/run/training/session.hpp"

namespace engram {

/// Writes the rows beside the checkpoint that is about to be written, or removes an older file when there are none.
/// Before the rows are brought up to date. Throws FileError when the file cannot be written.
void save_late_rows(const std::filesystem::path& checkpoint, const TrainingSession& session);
/// Removes what save_late_rows wrote.
void remove_late_rows(const std::filesystem::path& checkpoint);
/// Which rows load_late_rows() would find beside the checkpoint of this step: "none", or the checksum of their file.
/// Throws FileError when it is damaged.
std::string late_rows_beside(const std::filesystem::path& checkpoint, std::int64_t step);
/// Sets the rows of a session that the checkpoint was loaded into to what they were, if the file beside it is of its
/// step and of these tables. Throws FileError when it is damaged.
void load_late_rows(const std::filesystem::path& checkpoint, TrainingSession& session);

}  // namespace engram
