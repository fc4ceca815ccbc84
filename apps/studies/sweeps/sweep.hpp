#pragma once
/// Trains the variants of a sweep and measures each.

#include <functional>
#include <vector>

#include "apps/studies/sweeps/sweep_result.hpp"
#include "core/communicator.hpp"

namespace engram {

/// Each run is an ordinary one in its own folder; what is trained already is only measured, what was interrupted goes
/// on. When all are trained, one of each variant is timed (inference_speed.hpp). After every run sweep.csv
/// (sweep_report.hpp) and runs.csv in the sweep's folder are written anew. A run that diverges, has no memory left or
/// fails is an outcome; errors of files, devices and options end the sweep and name the run. `stop` is asked after
/// every step and between runs: when it says true, Interrupted is thrown. `ranks`: each trains some of the runs by
/// itself, every so many one after the other, and gets the results of all. Nothing is timed then, as ranks that wait
/// take the cores. Rank 0 writes the tables, once all are trained; what ends the sweep on one rank ends it on all, once
/// they have come to the end of theirs.
std::vector<RunResult> run_sweep(const SweepOptions& options, const data::DataSet& data,
                                 const std::vector<SweepRun>& runs, const std::function<bool()>& stop,
                                 Communicator& ranks);

}  // namespace engram
