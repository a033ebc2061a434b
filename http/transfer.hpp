// transfer.hpp -- one attempt of a request on a libcurl handle: options in, head and body out, timers.
//
// Of libcurl's timers only the one for connecting is used: those for whole transfers run while a handle waits inside
// libcurl, low-speed limits are averages that a stall of seconds does not move, and there is none for the first byte.
//
// Threads:  the session's. Callbacks never throw into libcurl: they store what went wrong and end the transfer.
// Lifetime: a Transfer is neither copied nor moved: libcurl holds its address. Handles are kept and used again.
#pragma once

#include <curl/curl.h>

#include <array>
#include <memory>
#include <optional>
#include <string>

#include "http/flight.hpp"
#include "http/inflate.hpp"
#include "http/origin.hpp"
#include "kvingest/http_client.hpp"

namespace kvingest::http {

struct EasyCloser {
  void operator()(CURL* easy) const noexcept { curl_easy_cleanup(easy); }
};
using EasyHandle = std::unique_ptr<CURL, EasyCloser>;

struct ListCloser {
  void operator()(curl_slist* list) const noexcept { curl_slist_free_all(list); }
};
using HeaderList = std::unique_ptr<curl_slist, ListCloser>;

class Transfer {
 public:
  Transfer(EasyHandle easy, std::unique_ptr<Flight> flight, const SessionOptions& options);
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  [[nodiscard]] CURL* easy() const noexcept { return easy_.get(); }
  [[nodiscard]] Flight& flight() noexcept { return *flight_; }

  /// When the first of its timers runs out.
  [[nodiscard]] Clock::time_point due() const;
  /// What has run out, as an error; nothing when none has.
  [[nodiscard]] std::optional<Error> timed_out(Clock::time_point now) const;

  /// libcurl is done with it: judges the transfer, puts its response into the flight, and gives both parts back.
  void finish(CURLcode code);
  [[nodiscard]] std::unique_ptr<Flight> take_flight() { return std::move(flight_); }
  [[nodiscard]] EasyHandle take_easy();

 private:
  static std::size_t on_header(char* data, std::size_t size, std::size_t count, void* self) noexcept;
  static std::size_t on_body(char* data, std::size_t size, std::size_t count, void* self) noexcept;
  static int on_connected(void* self, char*, char*, int, int) noexcept;

  void set_options(const SessionOptions& options);
  void set_headers(const SessionOptions& options);
  bool take_header(std::string_view line);
  bool begin_body();
  bool take_body(std::string_view bytes);
  bool stop(Kind kind, std::string text);

  EasyHandle easy_;
  std::unique_ptr<Flight> flight_;
  HeaderList headers_;
  std::array<char, CURL_ERROR_SIZE> problem_{};
  BodyDecoder decoder_;
  Error stopped_;  // Why a callback ended the transfer.
  bool body_begun_ = false;
  bool to_sink_ = false;
  std::size_t head_bytes_ = 0;
  bool connected_ = false;
  bool first_byte_ = false;
  Clock::time_point connected_at_;
  Clock::time_point last_byte_at_;
};

}  // namespace kvingest::http
