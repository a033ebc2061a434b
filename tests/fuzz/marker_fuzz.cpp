// The marker of a store: any text is read to its end or refused, and what is read, written anew, reads the same. Half
// of the inputs get the checksum that they need to come past the first look.
#include <xxhash.h>

#include <fmt/format.h>

#include "storage/acked.hpp"
#include "storage/marker.hpp"
#include "tests/fuzz/fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace kvingest;
  if (size == 0) return 0;
  std::string text(fuzz::view_of(data + 1, size - 1));
  if (const auto acked = decode_acked(text)) {
    const AckedCopy again = encode_acked(*acked);
    KV_ASSERT(std::string_view(again.data(), again.size()) == text);
  }
  if ((data[0] & 1) != 0) text += fmt::format("checksum {:016x}\n", XXH3_64bits(text.data(), text.size()));
  const auto marker = decode_marker(text, "STORE");
  if (!marker) return 0;
  const auto encoded = encode_marker(*marker);
  if (!encoded) return 0;  // Larger than a marker may be.
  const auto same = decode_marker(*encoded, "STORE");
  KV_ASSERT(same.has_value());
  KV_ASSERT(same->engine == marker->engine && same->format_version == marker->format_version &&
            same->created == marker->created && same->ready == marker->ready && same->labels == marker->labels);
  return 0;
}
