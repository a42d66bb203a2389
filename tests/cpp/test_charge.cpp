// Charges: one expression is the time and, while a critical path is recorded, the declared numbers that it is the sum of.
#include "fixture.hpp"

namespace retrompi::test {
namespace {

class ChargeTest : public testing::Test {
 public:
  ChargeTest() {
    spec.tcp_byte = 2.5;  // ps
    spec.interrupt = 7;
    spec.syscall = 4 * kMicrosecond;
    spec.clock = 2 * kReferenceClock;  // library work takes half of what is declared
    stream.call.ps = 100;
    stream.message_cpu.ps = 31;
    stream.calls_in = 2.5;
  }
  struct Told {
    const void* owner;
    std::string field;
    double times;
    bool operator==(const Told& o) const { return owner == o.owner && field == o.field && std::abs(times - o.times) <= 1e-12 * std::abs(times); }
  };
  [[nodiscard]] std::vector<Told> terms(const Charge& c) const {
    std::vector<Told> all;
    for (const CriticalPath::Term& t : anatomy.critical.bills()[c.bill]) all.push_back({t.owner, t.field, t.times});
    return all;
  }
  HostSpec spec = plain_host();
  StreamSpec stream;
  Loop loop;
  Anatomy anatomy;
};

TEST_F(ChargeTest, IsATimeAloneWhileNothingIsRecorded) {
  Host h(loop, anatomy, spec);
  EXPECT_EQ(h.charge(host_number::interrupt, 3 * host_number::tcp_byte).ps, 7 + 7);  // 7.5 is 7 whole picoseconds
  EXPECT_EQ(h.charge(host_number::interrupt, 3 * host_number::tcp_byte).bill, 0U);
  EXPECT_EQ(h.work_of(stream, stream_number::call, 3 * stream_number::message_cpu).ps, 97);  // 193 in all, halved and rounded once
  EXPECT_EQ(h.system_calls(stream, stream_number::calls_in).ps, 10 * kMicrosecond);
  EXPECT_EQ(h.charge(500.0 / host_number::nic_rate).ps, 500 * kMicrosecond);
}

TEST_F(ChargeTest, StatesItsTermsWhereAPathIsRecorded) {
  Host h(loop, anatomy, spec);
  anatomy.critical.on = true;
  const void* fields = static_cast<const HostFields*>(&h.spec);
  using Terms = std::vector<Told>;
  EXPECT_EQ(terms(h.charge(host_number::interrupt, 3 * host_number::tcp_byte)), (Terms{{fields, "interrupt", 1}, {fields, "tcp_byte", 3}}));
  EXPECT_EQ(terms(h.work_of(stream, stream_number::call, 0 * stream_number::message_cpu)), (Terms{{&stream, "call", 0.5}}));
  EXPECT_EQ(terms(h.system_calls(stream, stream_number::calls_in)), (Terms{{&stream, "calls_in", 4e-6}}));
  EXPECT_EQ(terms(h.charge(500.0 / host_number::nic_rate)), (Terms{{fields, "nic_rate", -500 / 1e12}}));
  EXPECT_EQ(h.charge(0 * host_number::tcp_byte).bill, 0U);
}

// The derivative that is stated is the time's: a number that is a little larger makes the charge so much longer.
TEST_F(ChargeTest, TermsAreTheDerivativesOfTheTime) {
  anatomy.critical.on = true;
  Host h(loop, anatomy, spec);
  const int64_t bytes = 123'457;
  auto parts = [&](const Host& on) { return on.charge(2 * host_number::tcp_segment, bytes * host_number::tcp_byte, 1e5 / host_number::nic_rate); };
  const Charge now = parts(h);
  for (const auto& term : terms(now)) {
    HostSpec more = spec;
    double step = 0;  // seconds, or bytes per second
    if (term.field == "tcp_segment") more.tcp_segment += 1000, step = 1000 / kPsPerSecond;
    if (term.field == "tcp_byte") more.tcp_byte += 1000, step = 1000 / kPsPerSecond;
    if (term.field == "nic_rate") step = more.nic_rate * 1e-6, more.nic_rate += step;
    Host other(loop, anatomy, more);
    EXPECT_NEAR(static_cast<double>(parts(other).ps - now.ps), term.times * step * kPsPerSecond, 2) << term.field;
  }
}

TEST_F(ChargeTest, BillsAreJoined) {
  CriticalPath& path = anatomy.critical;
  const CriticalPath::Bill a = path.bill({{this, "a", 1}}), b = path.bill({{this, "b", 2}});
  EXPECT_EQ(path.joined(a, 0), a);
  EXPECT_EQ(path.joined(0, b), b);
  EXPECT_EQ(terms({0, path.joined(a, b)}), (std::vector<Told>{{this, "a", 1}, {this, "b", 2}}));
}

}  // namespace
}  // namespace retrompi::test
