/// Files of PyTorch's forms that want to be more than weights, or are broken: each is refused by one error.

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "apps/run/weights/pytorch/module_state.hpp"
#include "apps/run/weights/pytorch/token_list.hpp"
#include "tests/apps/run/weights/pickle_bytes.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/temporary_folder.hpp"

namespace engram::harness::hostile_weights_test {
namespace {

namespace fs = std::filesystem;
using namespace pickled;

MappedFile in_memory(const std::string& bytes) {
  const auto copy = std::make_shared<std::string>(bytes);
  return {std::shared_ptr<const std::byte>(copy, reinterpret_cast<const std::byte*>(copy->data())), copy->size()};
}

/// All that is read of a model: what the file says, its tensors' numbers. What is no FileError goes through.
std::string refusal(const std::string& bytes) {
  return message_of<FileError>([&] {
    const PytorchFile file(in_memory(bytes), "'file'");
    const ModuleState state = read_module_state(file);
    for (const auto& [name, tensor] : state.tensors) {
      std::vector<double> values(static_cast<std::size_t>(tensor.shape.count()));
      if (tensor.kind) tensor.read(0, DType::f64, std::as_writable_bytes(std::span(values)));
    }
  });
}

std::string tokens_refusal(const std::string& bytes) {
  return message_of<FileError>([&] { read_token_list(PytorchFile(in_memory(bytes), "'file'")); });
}

std::string with_tensor(const std::string& one) { return whole(mapping("w", one)); }
const std::string kFourNumbers(16, '\1');

TEST_CASE("hostile weights: a good file is read, and nothing but known names") {
  const std::string good = tensor(storage("0", 4), 0, tuple({integer(2), integer(2)}), tuple({integer(1), integer(2)}));
  CHECK(refusal(archive_of(with_tensor(good), {{"0", kFourNumbers}})).empty());
  const auto refused = [&](const std::string& pickle) { return refusal(archive_of(whole(pickle))); };
  CHECK_THAT(refused(name("os", "system") + tuple({text("true")}) + "R"), ContainsSubstring("pytorch: 'file'") &&
                                                                              ContainsSubstring("data.pkl") &&
                                                                              ContainsSubstring("got 'os.system'"));
  CHECK_THAT(refused("(" + text("builtins") + text("eval") + "\x93."), ContainsSubstring("got 'builtins.eval'"));
  CHECK_THAT(refused(name("torch", "load") + ")R"), ContainsSubstring("got 'torch.load'"));
  CHECK_THAT(refused(name("torch.nn.modules.linear", "Linear.forward") + ")R"), ContainsSubstring("Linear.forward'"));
  // Operations that name code in other ways.
  CHECK_THAT(refused("(ios\nsystem\n"), ContainsSubstring("got 0x69"));
  CHECK_THAT(refused("\x82\x01"), ContainsSubstring("got 0x82"));
  CHECK_THAT(refused(text("x") + ")R"), ContainsSubstring("a call must be one of a known class or function"));
  CHECK_THAT(refused(name("torch", "FloatStorage") + ")R"), ContainsSubstring("torch.FloatStorage must have the arg"));
}

TEST_CASE("hostile weights: broken pickles") {
  const auto refused = [&](const std::string& pickle) { return refusal(archive_of(pickle)); };
  CHECK_THAT(refused(""), ContainsSubstring("must have 1 byte from byte 0 on, got 0"));
  CHECK_THAT(refused("\x80\x06N."), ContainsSubstring("protocol 2 to 5, got 6"));
  CHECK_THAT(refused("(lp0\n."), ContainsSubstring("got an older one"));
  CHECK_THAT(refused(whole("")), ContainsSubstring("must find what it takes"));
  CHECK_THAT(refused(whole("NN")), ContainsSubstring("must be one value"));
  CHECK_THAT(refused(whole("N") + "N"), ContainsSubstring("must end with its pickle, got 1 bytes behind it"));
  CHECK_THAT(refused(whole("t")), ContainsSubstring("got no mark"));
  CHECK_THAT(refused(whole("h\x07")), ContainsSubstring("got number 7"));
  CHECK_THAT(refused(whole("NNa")), ContainsSubstring("only a list may get elements"));
  CHECK_THAT(refused(whole("]NNs")), ContainsSubstring("only a dictionary may get keys"));
  CHECK_THAT(refused(whole("}(Nu")), ContainsSubstring("only a dictionary may get keys"));
  CHECK_THAT(refused(whole("]}b")), ContainsSubstring("only an object may get attributes"));
  CHECK_THAT(refused(whole("]N(aN")), ContainsSubstring("must find what it takes"));
  CHECK_THAT(refused(whole("X" + bytes_of(std::uint32_t{0xffffffff}))),
             ContainsSubstring("must have 4294967295 bytes"));
  CHECK_THAT(refused(whole("\x8d" + bytes_of(~std::uint64_t{0}))), ContainsSubstring("must have 18446744073709551615"));
  CHECK_THAT(refused(whole("\x8b" + bytes_of(std::uint32_t{1u << 31}))),
             ContainsSubstring("must have 2147483648 bytes"));
  CHECK_THAT(refused(whole("c" + std::string(2000, 'a') + "\nb\n")), ContainsSubstring("must have a line end within"));
  CHECK_THAT(refused(whole("r" + bytes_of(std::uint32_t{0xfffffff0}))), ContainsSubstring("must find what it takes"));
}

TEST_CASE("hostile weights: deep nesting, values that hold themselves, and calls that multiply") {
  const std::string nested = whole(std::string(200'000, ']') + std::string(199'999, 'a'));
  CHECK_THAT(refusal(archive_of(nested)), ContainsSubstring("must be a model, its state dict"));
  CHECK_THAT(tokens_refusal(nested), ContainsSubstring("must be a vocabulary"));
  CHECK_THAT(tokens_refusal(whole("]q\1h\1a")), ContainsSubstring("must be a vocabulary"));
  CHECK_THAT(tokens_refusal(whole("}q\1" + text("idx2sym") + "h\1s")), ContainsSubstring("must be a vocabulary"));
  // A module that is its own part; and thirty that hold the next one twice each.
  const std::string module = name("torch.nn.modules.container", "Sequential") + ")\x81";
  const auto holding = [&](const std::string& modules) {
    return "}" + text("_parameters") + "}s" + text("_modules") + modules + "sb";
  };
  CHECK_THAT(refusal(archive_of(whole(module + "q\1" + holding(mapping("x", "h\1"))))),
             ContainsSubstring("got some that hold themselves"));
  std::string twice = module + holding("}");
  for (int i = 0; i < 30; ++i)
    twice +=
        "q\2"
        "0" +
        module + holding("}" + text("a") + "h\2s" + text("b") + "h\2s");
  CHECK_THAT(refusal(archive_of(whole(twice))), ContainsSubstring("up to 100000 of them"));
  // A list of a thousand, copied by every call.
  std::string copies = "](" + std::string(1000, 'N') +
                       "e\x85q\1"
                       "0(" +
                       name("builtins", "set") +
                       "q\2"
                       "0";
  for (int i = 0; i < 3000; ++i) copies += "h\2h\1R";
  CHECK_THAT(tokens_refusal(whole(copies + "t")), ContainsSubstring("got more copies than bytes"));
}

TEST_CASE("hostile weights: tensors and storages that are not there") {
  const auto refused = [&](const std::string& one, const std::string& data = kFourNumbers) {
    return refusal(archive_of(with_tensor(one), {{"0", data}}));
  };
  const std::string four = storage("0", 4), two = tuple({integer(2)}), one_step = tuple({integer(1)});
  CHECK_THAT(refused(tensor(four, 3, two, one_step)), ContainsSubstring("w must lie in its storage of 4 numbers"));
  CHECK_THAT(refused(tensor(four, -1, two, one_step)), ContainsSubstring("w must lie in its storage"));
  CHECK_THAT(refused(tensor(four, 0, two, tuple({integer(4)}))), ContainsSubstring("w must lie in its storage"));
  CHECK_THAT(refused(tensor(four, 0, two, tuple({integer(-1)}))), ContainsSubstring("with a size and a stride from 0"));
  CHECK_THAT(refused(tensor(four, 0, two, tuple({}))), ContainsSubstring("got 1 sizes, 0 strides"));
  CHECK_THAT(refused(tensor(four, 0, tuple({integer(1), integer(1), integer(1), integer(1), integer(1), integer(1)}),
                            tuple({integer(1), integer(1), integer(1), integer(1), integer(1), integer(1)}))),
             ContainsSubstring("must have up to 5 axes"));
  // A number that stands for very many, and products beyond what is counted.
  const std::string huge = integer(std::int64_t{1} << 40), none = tuple({integer(0), integer(0)});
  CHECK_THAT(refused(tensor(four, 0, tuple({huge}), tuple({integer(0)}))), ContainsSubstring("w must lie in its"));
  CHECK_THAT(refused(tensor(four, 0, tuple({huge, huge}), none)), ContainsSubstring("w must lie in its storage"));
  CHECK_THAT(refused(tensor(four, 0, two, tuple({integer(std::int64_t{1} << 62)}))),
             ContainsSubstring("w must lie in"));
  CHECK(refused(tensor(four, 0, tuple({integer(0), integer(3)}), none)).empty());
  CHECK_THAT(refused(tensor(storage("0", 5), 0, two, one_step)),
             ContainsSubstring("'0' must have 5 numbers of 4 bytes"));
  CHECK_THAT(refused(tensor(four, 0, two, one_step), "123456789012345"), ContainsSubstring("got 15 bytes"));
  CHECK_THAT(refused(tensor(storage("1", 4), 0, two, one_step)),
             ContainsSubstring("must have the storage '1', got none"));
  CHECK_THAT(refused(tensor(integer(4), 0, two, one_step)), ContainsSubstring("_rebuild_tensor_v2 must have the arg"));
  CHECK_THAT(refused(tuple({four, storage("0", 4, "HalfStorage")})), ContainsSubstring("'0' a second time"));
  CHECK_THAT(refused(integer(4) + "Q"), ContainsSubstring("a persistent id must be that of a storage"));
  CHECK_THAT(refused(tuple({text("storage"), text("os.system"), text("0"), text("cpu"), integer(4)}) + "Q"),
             ContainsSubstring("one of another type"));
  CHECK_THAT(refused(storage("0", -4)), ContainsSubstring("got no length"));
}

TEST_CASE("hostile weights: archives") {
  const ZipMember pickle{.name = "a/data.pkl", .data = whole("}")};
  const auto refused = [&](ZipMember other, ZipMember first) { return refusal(zip_of({first, other})); };
  const auto with = [&](ZipMember other) { return refused(std::move(other), pickle); };
  CHECK_THAT(with({.name = "b", .data = "x", .method = 8, .stated_size = 1 << 30}),
             ContainsSubstring("'b' must be stored as it is") && ContainsSubstring("method 8"));
  CHECK_THAT(with({.name = "b", .data = "x", .stated_size = 1 << 30}), ContainsSubstring("got 1073741824"));
  CHECK_THAT(with({.name = "b", .data = "x", .stated_size = 1 << 30, .stated_packed = 1 << 30}),
             ContainsSubstring("'b' must lie before the directory"));
  CHECK_THAT(with({.name = "b", .data = "x", .flags = 1}), ContainsSubstring("got an encrypted member"));
  CHECK_THAT(with({.name = "b", .data = "/etc/passwd", .made_by = 3 << 8, .attributes = 0120777u << 16}),
             ContainsSubstring("'b' must be a file, got a symbolic link"));
  CHECK_THAT(with({.name = "b", .data = "x", .stated_place = 1 << 30}), ContainsSubstring("'b' must lie before the"));
  CHECK_THAT(with({.name = "b", .data = "x", .stated_place = 3}), ContainsSubstring("'b' must begin at byte 3"));
  CHECK_THAT(with({.name = "b", .data = "x", .stated_place = 0}), ContainsSubstring("must be the same member"));
  CHECK_THAT(with({.name = "a/data.pkl", .data = whole("}")}), ContainsSubstring("got 'a/data.pkl' twice"));
  CHECK_THAT(with({.name = "b/data.pkl", .data = whole("}")}), ContainsSubstring("must have one data.pkl, got two"));
  CHECK_THAT(with({.name = "a/byteorder", .data = "big"}), ContainsSubstring("with the lowest byte first"));
  CHECK_THAT(refusal(zip_of({{.name = "code.py", .data = ""}})), ContainsSubstring("with a data.pkl, got another"));
  // One member inside of another one: its header and data are the other's data.
  const std::string inner = zip_of({{.name = "a/data/0", .data = "1234"}});
  CHECK_THAT(refused({.name = "a/data/0", .data = "1234", .stated_place = 30 + 3}, {.name = "big", .data = inner}),
             ContainsSubstring("must not overlap, got 'big' and 'a/data/0'"));
  std::string damaged = zip_of({pickle});
  damaged[damaged.find('}')] = ']';
  CHECK_THAT(refusal(damaged), ContainsSubstring("must have the checksum of the directory"));
  std::string many = zip_of({pickle});
  many[many.size() - 14] = many[many.size() - 12] = '\x70';
  CHECK_THAT(refusal(many), ContainsSubstring("must have at most 1 members, got 112"));
}

TEST_CASE("hostile weights: what is no file is refused as by other readers") {
  const TemporaryFolder folder;
  CHECK_THAT(message_of<FileError>([&] { PytorchFile(folder.path()); }), ContainsSubstring("got a folder"));
  CHECK_THAT(message_of<FileError>([&] { PytorchFile(folder / "none"); }),
             ContainsSubstring("must be a readable file"));
  CHECK_THAT(message_of<FileError>([] { PytorchFile(fs::path("/dev/zero")); }), ContainsSubstring("regular file"));
  CHECK_THAT(message_of<FileError>([&] { PytorchFile(put_file(folder / "empty", "")); }), ContainsSubstring("got 0"));
}

/// Of small files of all forms, every step-th byte, and of a larger one the part where tensors and modules are named.
void damage_files(std::size_t step) {
  for (const char* name : {"cache.pt", "corpus.pt", "vocab.pkl"}) {
    const std::string good = get_file(fs::path(ENGRAM_SOURCE_DIR) / "tests/golden/released" / name);
    REQUIRE(good.size() > 500);
    CHECK(tokens_refusal(good).empty());
    for (std::size_t size = 0; size < good.size(); size += step)
      if (tokens_refusal(good.substr(0, size)).empty()) FAIL_CHECK(name << " of " << size << " bytes was read");
    for (std::size_t at = 0; at < good.size(); at += step)
      for (const char flip : {'\x01', '\xff'}) {
        std::string other = good;
        other[at] = static_cast<char>(other[at] ^ flip);
        tokens_refusal(other);  // refused, or not; nothing else is thrown
      }
  }
  // Of a larger file the part where tensors and modules are named.
  const std::string model = get_file(fs::path(ENGRAM_SOURCE_DIR) / "tests/golden/released/transformer-xl.pt");
  CHECK(refusal(model).empty());
  for (std::size_t at = 0; at < model.size(); at += 41) {
    CHECK_FALSE(refusal(model.substr(0, at)).empty());
    std::string other = model;
    other[at] = static_cast<char>(other[at] ^ 0x11);
    refusal(other);
  }
}

// Watched, all bytes take a minute.
TEST_CASE("hostile weights: files of all forms cut short at every byte, and with every byte another one", "[night]") {
  damage_files(1);
}
TEST_CASE("hostile weights: the same at every seventh byte") { damage_files(7); }

}  // namespace
}  // namespace engram::harness::hostile_weights_test
