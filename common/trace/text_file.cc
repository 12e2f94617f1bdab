#include "common/trace/text_file.h"

#include <errno.h>
#include <lzma.h>
#include <stdio.h>

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/errno_status.h"
#include "common/base/status_macros.h"

namespace mets::trace {
namespace {

constexpr size_t kReadBlock = 64 << 10;

struct FileCloser {
  void operator()(FILE* file) const { fclose(file); }
};
using File = std::unique_ptr<FILE, FileCloser>;

bool IsCompressed(const std::string& path) {
  return absl::EndsWith(path, ".xz");
}

absl::StatusOr<std::string> ReadAll(const std::string& path) {
  File file(fopen(path.c_str(), "rbe"));
  if (file == nullptr) return ErrnoToStatus(errno, absl::StrCat("open ", path));
  std::string all;
  std::string block(kReadBlock, '\0');
  size_t got;
  while ((got = fread(block.data(), 1, block.size(), file.get())) > 0) {
    all.append(block, 0, got);
  }
  if (ferror(file.get())) {
    return ErrnoToStatus(errno, absl::StrCat("read ", path));
  }
  return all;
}

// A compressor's or decompressor's state.
class LzmaStream {
 public:
  ~LzmaStream() { lzma_end(&stream); }
  lzma_stream stream = LZMA_STREAM_INIT;

  // Feeds `input` and appends what comes out, until the input is used up and,
  // with LZMA_FINISH, the output is complete.
  lzma_ret Run(absl::string_view input, lzma_action action, std::string* out) {
    std::string block(kReadBlock, '\0');
    stream.next_in = reinterpret_cast<const uint8_t*>(input.data());
    stream.avail_in = input.size();
    lzma_ret result = LZMA_OK;
    do {
      stream.next_out = reinterpret_cast<uint8_t*>(block.data());
      stream.avail_out = block.size();
      result = lzma_code(&stream, action);
      out->append(block, 0, block.size() - stream.avail_out);
    } while (result == LZMA_OK &&
             (action == LZMA_FINISH || stream.avail_in > 0 ||
              stream.avail_out == 0));
    return result;
  }
};

absl::StatusOr<std::string> Decompress(const std::string& path,
                                       absl::string_view compressed) {
  LzmaStream lzma;
  if (lzma_stream_decoder(&lzma.stream, UINT64_MAX, LZMA_CONCATENATED) !=
      LZMA_OK) {
    return absl::ResourceExhaustedError("no memory for the xz decoder");
  }
  std::string text;
  const lzma_ret result = lzma.Run(compressed, LZMA_FINISH, &text);
  if (result == LZMA_STREAM_END) return text;
  const auto line = std::count(text.begin(), text.end(), '\n') + 1;
  const char* why = result == LZMA_BUF_ERROR      ? "the file is cut"
                    : result == LZMA_FORMAT_ERROR ? "it is no .xz file"
                                                  : "the file is damaged";
  return absl::DataLossError(
      absl::StrCat(path, ":", line, ": cannot be decompressed further: ", why));
}

class PlainWriter : public TextFileWriter {
 public:
  PlainWriter(std::string path, File file)
      : path_(std::move(path)), file_(std::move(file)) {}

  absl::Status Append(absl::string_view text) override {
    if (file_ == nullptr) return Closed();
    if (fwrite(text.data(), 1, text.size(), file_.get()) == text.size()) {
      return absl::OkStatus();
    }
    const absl::Status status = Failed();
    file_ = nullptr;
    return status;
  }
  absl::Status Close() override {
    if (file_ == nullptr) return Closed();
    const int result = fclose(file_.release());
    return result == 0 ? absl::OkStatus() : Failed();
  }

 private:
  absl::Status Failed() const {
    return ErrnoToStatus(errno, absl::StrCat("write ", path_));
  }
  absl::Status Closed() const {
    return absl::FailedPreconditionError(absl::StrCat(path_, " is closed"));
  }

  const std::string path_;
  File file_;
};

class XzWriter : public TextFileWriter {
 public:
  XzWriter(std::string path, File file)
      : plain_(std::move(path), std::move(file)) {}

  absl::Status Init() {
    const lzma_ret result =
        lzma_easy_encoder(&lzma_.stream, LZMA_PRESET_DEFAULT, LZMA_CHECK_CRC64);
    return result == LZMA_OK
               ? absl::OkStatus()
               : absl::ResourceExhaustedError("no memory for the xz encoder");
  }
  absl::Status Append(absl::string_view text) override {
    // The encoder takes a second call without input for an error.
    return text.empty() ? absl::OkStatus() : Run(text, LZMA_RUN);
  }
  absl::Status Close() override {
    METS_RETURN_IF_ERROR(Run("", LZMA_FINISH));
    return plain_.Close();
  }

 private:
  absl::Status Run(absl::string_view text, lzma_action action) {
    std::string out;
    const lzma_ret result = lzma_.Run(text, action, &out);
    if (result != LZMA_OK && result != LZMA_STREAM_END) {
      return absl::InternalError(absl::StrCat("the xz encoder says ", result));
    }
    return plain_.Append(out);
  }

  LzmaStream lzma_;
  PlainWriter plain_;
};

}  // namespace

absl::StatusOr<std::string> ReadTextFile(const std::string& path) {
  METS_ASSIGN_OR_RETURN(std::string bytes, ReadAll(path));
  if (!IsCompressed(path)) return bytes;
  return Decompress(path, bytes);
}

absl::StatusOr<std::unique_ptr<TextFileWriter>> TextFileWriter::Create(
    const std::string& path) {
  File file(fopen(path.c_str(), "wbe"));
  if (file == nullptr) {
    return ErrnoToStatus(errno, absl::StrCat("create ", path));
  }
  if (!IsCompressed(path)) {
    return std::make_unique<PlainWriter>(path, std::move(file));
  }
  auto writer = std::make_unique<XzWriter>(path, std::move(file));
  METS_RETURN_IF_ERROR(writer->Init());
  return writer;
}

}  // namespace mets::trace
