/// The program `dot`, run on a drawing.

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>

#include "apps/tape/tape_graph.hpp"
#include "core/error.hpp"

namespace engram {
namespace {

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

/// A file without a name, which is gone when it is closed.
File unnamed_file() {
  File file(std::tmpfile());
  if (!file) throw FileError(text("tape: a temporary file could not be made: ", std::strerror(errno)));
  return file;
}

void to_begin(std::FILE* file) {
  if (std::fseek(file, 0, SEEK_SET) != 0)
    throw FileError(text("tape: a temporary file could not be read from its begin: ", std::strerror(errno)));
}

std::string contents(std::FILE* file) {
  std::string all;
  to_begin(file);
  std::array<char, 1 << 16> piece{};
  while (std::feof(file) == 0 && std::ferror(file) == 0)
    all.append(piece.data(), std::fread(piece.data(), 1, piece.size(), file));
  if (std::ferror(file) != 0) throw FileError("tape: a temporary file could not be read");
  return all;
}

struct FileActions {
  FileActions() { posix_spawn_file_actions_init(&actions); }
  ~FileActions() { posix_spawn_file_actions_destroy(&actions); }
  FileActions(const FileActions&) = delete;
  FileActions& operator=(const FileActions&) = delete;
  posix_spawn_file_actions_t actions{};
};

/// Runs `dot -Tsvg` with these as its input, output and errors. Returns whether it ended well.
bool run_dot(std::FILE* in, std::FILE* out, std::FILE* errors) {
  FileActions files;
  posix_spawn_file_actions_adddup2(&files.actions, fileno(in), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&files.actions, fileno(out), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&files.actions, fileno(errors), STDERR_FILENO);
  std::string program = "dot", format = "-Tsvg";
  std::array<char*, 3> arguments{program.data(), format.data(), nullptr};
  pid_t child = 0;
  if (posix_spawnp(&child, program.c_str(), &files.actions, nullptr, arguments.data(), environ) != 0)
    throw NotAvailable(
        "tape: an SVG drawing is made by Graphviz, whose program `dot` is not here\n"
        "  install the package graphviz, or take --dot and draw the file elsewhere: dot -Tsvg FILE");
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

std::string drawn_by_graphviz(const std::string& graph) {
  const File in = unnamed_file(), out = unnamed_file(), errors = unnamed_file();
  if (std::fwrite(graph.data(), 1, graph.size(), in.get()) != graph.size() || std::fflush(in.get()) != 0)
    throw FileError(text("tape: a temporary file could not be written: ", std::strerror(errno)));
  to_begin(in.get());
  const bool well = run_dot(in.get(), out.get(), errors.get());
  const std::string drawing = contents(out.get());
  const std::size_t begin = drawing.find("<svg ");
  if (!well || begin == std::string::npos)
    throw Error(text("tape: Graphviz must draw the tape, got an error of it: ", contents(errors.get())));
  // Without the declaration of a document type, which names an address, and without comments.
  std::string plain = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
  for (std::size_t at = begin; at < drawing.size();) {
    const std::size_t comment = std::min(drawing.find("<!--", at), drawing.size());
    plain += drawing.substr(at, comment - at);
    const std::size_t end = drawing.find("-->\n", comment);
    at = end == std::string::npos ? drawing.size() : end + 4;
  }
  return plain;
}

}  // namespace engram
