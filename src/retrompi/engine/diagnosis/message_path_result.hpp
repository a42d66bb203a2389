// The record of the path of messages between marks of the trace.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "mpi/rank.hpp"

namespace retrompi {

/// One direction of an exchange: from one rank's mark to another rank's mark.
struct DirectionSpec {
  int32_t from_rank;
  std::string from;
  int32_t to_rank;
  std::string to;
};

/// The record from the beginning of the first direction to the end of the last one.
struct MessagePathResult {
  /// An interval of the chain of causes; each ends where the next begins.
  struct Link {
    Ps begin, end;
    Stage stage;
    std::string who;
    int32_t process, packet;  // -1: none
  };
  struct Direction {
    Ps begin, end;
    std::vector<Link> chain;
  };
  struct Process {
    std::string name, host;
    std::vector<Anatomy::Seg> stretches;
  };
  struct Channel {
    int32_t number, from, to;  // from, to: places in `processes`
    std::string medium, resource;
    int64_t total;  // of the resource; 0: it has none
    std::string unit;
  };
  struct Work {  // of a kernel, a card, the wire or a timer
    std::string where;
    Stage stage, before;
    Ps asked, start, end;
    int32_t packet;
  };
  std::vector<Direction> directions;
  std::vector<std::string> hosts;
  std::vector<Process> processes;  // by the number of their thread's log
  std::vector<Channel> channels;
  std::vector<PacketTransit> transits;
  std::vector<NetworkPacket> packets;
  std::vector<Work> work;
};

std::shared_ptr<const MessagePathResult> message_path_of(const World& world, const Job& job, const Trace& trace,
                                                         const std::vector<DirectionSpec>& directions, const std::vector<Proc*>& procs,
                                                         const std::vector<const Chan*>& chans);

}  // namespace retrompi
