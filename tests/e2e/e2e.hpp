// e2e.hpp -- what the end-to-end tests share: kvingest, kvfeed and kvq as a user runs them, tried from outside.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

#include "tests/storage/scenario.hpp"
#include "tests/support/process.hpp"
#include "tests/support/service.hpp"
#include "tests/support/skip.hpp"
#include "tests/support/tcp_client.hpp"

namespace kvingest::test {

/// --store for a subject.
[[nodiscard]] inline std::string store_name(const Subject& subject) {
  return std::string(subject.engine().name);
}

/// A kvingest on the subject's engine and directory.
[[nodiscard]] Service::Options service_on(const Subject& subject, std::vector<std::string> args = {});

/// Waits until the other side's kernel has all that was sent on `peer`, read or not; throws when it has not.
void wait_until_taken(const TcpClient& peer);
/// Waits until the other side has read all that was sent on `peer`; throws when it does not.
void wait_until_read(const TcpClient& peer);

/// received is what became of the messages, and no message is without a fate.
void check_balance(const Json& ledger);

/// The CPUs each thread of `pid` whose name begins with `prefix` may run on: thread name -> "0-1".
[[nodiscard]] std::map<std::string, std::string> thread_cpus(pid_t pid, std::string_view prefix);

/// Runs kvingest with these arguments to its end; for starts that are to fail, and runs that end by themselves.
[[nodiscard]] Finished run_kvingest(std::vector<std::string> args, const Process::Options& options = {});

/// A mistake gets its exit code and a short message that holds `word`.
void check_refused(const Finished& done, int code, std::string_view word);

}  // namespace kvingest::test
