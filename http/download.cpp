// Downloads into files that go on where an earlier attempt ended.
//
// FILE.part holds what has come, FILE.part.info what it is a part of: two lines, the validator (a strong ETag) and the
// length of the whole. A part without a strong validator is begun anew: nothing says that the rest would fit it.
#include <fcntl.h>
#include <openssl/evp.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "base/posix.hpp"
#include "http/engine.hpp"
#include "kvingest/http_client.hpp"

namespace kvingest::http {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kInfoBytesMax = 16 * 1024;

/// `Content-Range: bytes FIRST-LAST/TOTAL`.
struct ContentRange {
  std::uint64_t first = 0;
  std::uint64_t total = 0;
};

std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<ContentRange> parse_range(std::string_view text) {
  if (!text.starts_with("bytes ")) return std::nullopt;
  text.remove_prefix(6);
  const std::size_t dash = text.find('-');
  const std::size_t slash = text.find('/');
  if (dash == text.npos || slash == text.npos || dash > slash) return std::nullopt;
  const auto first = number(text.substr(0, dash));
  const auto last = number(text.substr(dash + 1, slash - dash - 1));
  const auto total = number(text.substr(slash + 1));
  if (!first || !last || !total || *last < *first || *last >= *total) return std::nullopt;
  return ContentRange{*first, *total};
}

/// The whole's length in the `Content-Range: bytes */TOTAL` of a 416.
std::optional<std::uint64_t> total_of_refusal(std::string_view text) {
  return text.starts_with("bytes */") ? number(text.substr(8)) : std::nullopt;
}

bool is_strong(std::string_view etag) {
  return etag.size() >= 2 && etag.front() == '"' && etag.back() == '"';
}

class FileSink : public BodySink {
 public:
  using Progress = std::function<void(std::uint64_t, std::uint64_t)>;

  FileSink(fs::path part, bool resume, Progress progress)
      : part_(std::move(part)), info_(part_.native() + ".info"), progress_(std::move(progress)) {
    if (resume) read_info();
  }

  void attempt(Headers& headers) override {
    asked_ = 0;
    headers.push_back({"Accept-Encoding", "identity"});
    if (bytes_ == 0 || etag_.empty()) return;
    asked_ = bytes_;
    headers.push_back({"Range", fmt::format("bytes={}-", bytes_)});
    headers.push_back({"If-Range", etag_});
  }

  Result<bool> begin(int status, const Headers& headers) override {
    if (status == 206 && asked_ > 0) {
      const auto range = parse_range(find_header(headers, "content-range"));
      if (!range || range->first != asked_) {
        forget();  // The next attempt begins anew.
        return fail(Code::corrupt, "asked for the bytes from {} on, got '{}'", asked_,
                    find_header(headers, "content-range"));
      }
      const std::string_view etag = find_header(headers, "etag");
      if ((!etag.empty() && etag != etag_) || (total_ != 0 && total_ != range->total)) {
        forget();
        return fail(Code::corrupt, "the rest is of another file than the part that is here");
      }
      total_ = range->total;
      resumed_from_ = std::max(resumed_from_, bytes_);
      KV_TRY(open(O_WRONLY));
      return true;
    }
    if (status == 206) return fail(Code::corrupt, "a part of the file, where all of it was asked for");
    if (status != 200) return false;
    const std::string_view etag = find_header(headers, "etag");
    etag_ = is_strong(etag) ? etag : "";
    total_ = number(find_header(headers, "content-length")).value_or(0);
    bytes_ = resumed_from_ = 0;
    KV_TRY(open(O_WRONLY | O_CREAT | O_TRUNC));
    KV_TRY(replace_file(Posix::real(), info_, fmt::format("{}\n{}\n", etag_, total_)));
    return true;
  }

  Result<void> write(std::string_view bytes) override {
    KV_TRY(file_.write_at(bytes, bytes_));
    bytes_ += bytes.size();
    if (progress_) progress_(bytes_, total_);
    return {};
  }

  /// 416: nothing lies behind what is here. True: because it is all.
  bool complete_without_more(const Response& response) {
    const auto total = total_of_refusal(response.header("content-range"));
    const bool complete = asked_ > 0 && total == bytes_ && (total_ == 0 || total_ == bytes_);
    if (!complete) forget();
    return complete;
  }

  void forget() {
    bytes_ = asked_ = total_ = resumed_from_ = 0;
    etag_.clear();
  }

  Result<void> publish(const fs::path& file) {
    if (!file_.is_open()) KV_TRY(open(O_WRONLY | O_CREAT));
    KV_TRY(file_.sync_all());
    file_.reset();
    std::error_code error;
    fs::rename(part_, file, error);
    if (error) return fail(error.value(), "rename {} to {}", part_.native(), file.native());
    fs::remove(info_, error);
    return {};
  }

  void discard() {
    std::error_code ignored;
    file_.reset();
    fs::remove(part_, ignored);
    fs::remove(info_, ignored);
  }

  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] std::uint64_t resumed_from() const noexcept { return resumed_from_; }
  [[nodiscard]] std::uint64_t total() const noexcept { return total_; }
  [[nodiscard]] const fs::path& part() const noexcept { return part_; }

 private:
  Result<void> open(int flags) {
    auto file = File::open(Posix::real(), part_, flags);
    KV_TRY(file);
    file_ = *std::move(file);
    return {};
  }

  void read_info() {
    const auto info = read_file(Posix::real(), info_, kInfoBytesMax);
    std::error_code error;
    const std::uint64_t size = fs::file_size(part_, error);
    if (!info || error) return;
    const std::size_t end = info->find('\n');
    if (end == std::string::npos || !is_strong(std::string_view(*info).substr(0, end))) return;
    const auto total = number(std::string_view(*info).substr(end + 1, info->size() - end - 2));
    if (!total || (*total != 0 && size > *total)) return;
    etag_ = info->substr(0, end);
    total_ = *total;
    bytes_ = size;
  }

  fs::path part_;
  fs::path info_;
  Progress progress_;
  File file_;
  std::string etag_;
  std::uint64_t total_ = 0;
  std::uint64_t bytes_ = 0;  // In the file.
  std::uint64_t asked_ = 0;  // From where on this attempt asked; 0: for all.
  std::uint64_t resumed_from_ = 0;
};

Result<std::string> sha256_of(const fs::path& path) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  auto file = File::open(Posix::real(), path, O_RDONLY);
  KV_TRY(file);
  const auto size = file->size();
  KV_TRY(size);
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> digest(EVP_MD_CTX_new(), &EVP_MD_CTX_free);
  EVP_DigestInit_ex(digest.get(), EVP_sha256(), nullptr);
  std::string buffer(std::size_t{256} * 1024, '\0');
  for (std::uint64_t at = 0; at < *size;) {
    const auto part = static_cast<std::size_t>(std::min<std::uint64_t>(buffer.size(), *size - at));
    KV_TRY(file->read_at(buffer.data(), part, at));
    EVP_DigestUpdate(digest.get(), buffer.data(), part);
    at += part;
  }
  unsigned char bytes[EVP_MAX_MD_SIZE];
  unsigned count = 0;
  EVP_DigestFinal_ex(digest.get(), bytes, &count);
  std::string text;
  for (unsigned i = 0; i < count; ++i) {
    text += kDigits[bytes[i] >> 4];
    text += kDigits[bytes[i] & 15];
  }
  return text;
}

void refuse(Response& response, Kind kind, std::string text) {
  response.error = {kind, 0, std::move(text), std::nullopt};
}

}  // namespace

Download Session::download(std::string url, const fs::path& file, DownloadOptions options, Request request) {
  FileSink sink(file.native() + ".part", options.resume, std::move(options.progress));
  request.url = std::move(url);
  request.sink = &sink;
  if (request.timeout.total.count() == Timeouts{}.total.count()) request.timeout.total = Milliseconds(0);
  if (!request.verdict) {
    // Of a wrong part another attempt asks for the whole.
    request.verdict = [](const Response& response) {
      Verdict verdict = by_status(response);
      verdict.retry = verdict.retry || response.status == 416;
      return verdict;
    };
  }
  const auto judge = request.verdict;
  bool already_complete = false;
  request.verdict = [&, judge](const Response& response) -> Verdict {
    if (response.status == 416 && (already_complete = sink.complete_without_more(response))) return {};
    return judge(response);
  };
  Download done;
  done.response = this->request(std::move(request));
  done.bytes = sink.bytes();
  done.resumed_from = already_complete ? sink.bytes() : sink.resumed_from();
  if (!done.ok()) return done;
  if (sink.total() != 0 && sink.bytes() != sink.total()) {
    refuse(done.response, Kind::truncated, fmt::format("{} of {} bytes came", sink.bytes(), sink.total()));
    return done;
  }
  if (!options.sha256.empty()) {
    const auto found = sha256_of(sink.part());
    if (!found || *found != options.sha256) {
      refuse(done.response, Kind::rejected,
             found ? fmt::format("SHA-256 {} is not the {} expected", *found, options.sha256) : found.error().text);
      if (found) sink.discard();
      return done;
    }
  }
  const auto published = sink.publish(file);
  if (!published) refuse(done.response, Kind::sink, published.error().text);
  return done;
}

}  // namespace kvingest::http
