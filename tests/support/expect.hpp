// expect.hpp -- assertions on Results that print the error's text when they fail.
#pragma once

#include "kvingest/result.hpp"
#include "tests/support/catch.hpp"

namespace kvingest::test {

template <class T>
[[nodiscard]] std::string text_of(const Result<T>& result) {
  return result ? std::string("no error") : std::string(to_string(result.error().code)) + ": " + result.error().text;
}

}  // namespace kvingest::test

#define KV_EXPECT_(assertion, expression, condition)                      \
  do {                                                                    \
    auto&& kv_result_ = (expression);                                     \
    INFO(#expression << " -> " << ::kvingest::test::text_of(kv_result_)); \
    assertion((condition));                                               \
  } while (false)

#define CHECK_OK(expression) KV_EXPECT_(CHECK, expression, kv_result_.has_value())
#define REQUIRE_OK(expression) KV_EXPECT_(REQUIRE, expression, kv_result_.has_value())
/// The failure has this code: CHECK_CODE(store->write(batch, level), Code::too_large).
#define CHECK_CODE(expression, expected) \
  KV_EXPECT_(CHECK, expression, !kv_result_.has_value() && kv_result_.error().code == (expected))
#define REQUIRE_CODE(expression, expected) \
  KV_EXPECT_(REQUIRE, expression, !kv_result_.has_value() && kv_result_.error().code == (expected))
