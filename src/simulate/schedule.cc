// One class per rank walks through the training loop and tells ProgramWriter what to issue.
//
// Why no schedule here can block itself for ever: hosts wait for the GPU only at the end of a step;
// all members of a group issue the group's operations in the same order on one stream; and every
// wait of the compute stream is for something that others issue before anything that depends on
// this rank's later work. With a pipeline the compute stream waits for receives as they are needed
// and for sends only at the end of the step, so 1F1B's order decides alone.
#include "simulate/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "simulate/routing.h"

namespace commlens::simulate {
namespace {

enum class Half : std::uint8_t { attention, mlp };

class RankSchedule {
 public:
  RankSchedule(Plan& plan, SharedParts& shared, int rank)
      : spec_(plan.spec), rank_(rank), out_(plan, shared, rank), place_(out_.place()) {}

  void run_step(int index);

 private:
  void forward(int microbatch);
  void backward(int microbatch);
  void forward_layer(int layer, int microbatch);
  void backward_layer(int layer, int microbatch);
  void forward_mlp(int layer, int microbatch);
  void backward_mlp(int layer, int microbatch);
  void one_forward_one_backward();
  void receive_activation(int from, int stream);
  void send_activation(int to, int stream);
  void tensor_all_reduce();
  void exchange_tokens(const Routing& routing, bool to_experts);
  Routing routing(int layer, int microbatch) const;
  void gather_ahead(int layer);
  void wait_for_parameters(int layer);
  void scatter_gradients();
  void collect_gradients(Half half, int microbatch);
  void send_bucket(std::int64_t bytes);
  void optimizer();

  std::int64_t activation_elements() const { return spec_.activation_bytes / kElementBytes; }
  bool first_stage() const { return place_.stage == 0; }
  bool last_stage() const { return place_.stage == spec_.pp - 1; }
  int previous_rank() const { return rank_ - spec_.tp * spec_.dp; }
  int next_rank() const { return rank_ + spec_.tp * spec_.dp; }

  const JobSpec& spec_;
  int rank_;
  ProgramWriter out_;
  const Place& place_;
  int step_ = 0;
  std::optional<Pending> gathered_[2];  // parameters under way, by parity of the layer
  std::int64_t bucket_ = 0;             // bytes of gradients not sent yet
  std::vector<Pending>
      outstanding_;  // gradients and sends under way, waited for before the optimizer
};

// --- Parameters and gradients over dp ---

// Starts the all-gather of a layer's parameters; the layer may be outside, at the ends of a pass.
void RankSchedule::gather_ahead(int layer) {
  if (!spec_.fsdp || layer < 0 || layer >= place_.layers) return;
  const std::int64_t elements = spec_.layer_bytes / kElementBytes;
  const std::int64_t shard = (elements + spec_.dp - 1) / spec_.dp;
  gathered_[layer % 2] =
      out_.communicate(Op::all_gather, GroupKind::data, kDataStream, shard, shard * spec_.dp);
}

void RankSchedule::wait_for_parameters(int layer) {
  if (!spec_.fsdp) return;
  out_.wait(*gathered_[layer % 2]);
  gathered_[layer % 2].reset();
}

void RankSchedule::scatter_gradients() {
  if (!spec_.fsdp) return;
  const std::int64_t elements = spec_.layer_bytes / kElementBytes;
  const std::int64_t shard = (elements + spec_.dp - 1) / spec_.dp;
  outstanding_.push_back(
      out_.communicate(Op::reduce_scatter, GroupKind::data, kDataStream, shard * spec_.dp, shard));
}

void RankSchedule::send_bucket(std::int64_t bytes) {
  const std::int64_t elements = std::max<std::int64_t>(1, bytes / kElementBytes);
  outstanding_.push_back(
      out_.communicate(Op::all_reduce, GroupKind::data, kDataStream, elements, elements));
}

// DDP: gradients of the last microbatch are complete; full buckets leave at once. Experts that are
// spread over all of dp exist once, so their gradients stay. (Where only some of dp share the
// experts, their copies' gradients go with the others over the whole of dp: a simplification.)
void RankSchedule::collect_gradients(Half half, int microbatch) {
  if (spec_.fsdp || spec_.dp < 2 || microbatch != spec_.microbatches - 1) return;
  if (half == Half::mlp && spec_.moe && spec_.expert_group() == spec_.dp) return;
  const std::int64_t attention = spec_.layer_bytes / 3;
  bucket_ += half == Half::attention ? attention : spec_.layer_bytes - attention;
  for (; bucket_ >= spec_.bucket_bytes; bucket_ -= spec_.bucket_bytes)
    send_bucket(spec_.bucket_bytes);
}

// --- Inside a layer ---

void RankSchedule::tensor_all_reduce() {
  if (spec_.tp < 2) return;
  out_.wait(out_.communicate(Op::all_reduce, GroupKind::tensor, kTensorStream,
                             activation_elements(), activation_elements()));
}

Routing RankSchedule::routing(int layer, int microbatch) const {
  return route_tokens(spec_, {.group = place_.group_of(GroupKind::expert),
                              .step = step_,
                              .microbatch = microbatch,
                              .layer = place_.first_layer + layer});
}

void RankSchedule::exchange_tokens(const Routing& routing, bool to_experts) {
  out_.wait(out_.exchange(routing.rows, to_experts));
}

void RankSchedule::forward_mlp(int layer, int microbatch) {
  if (!spec_.moe) return out_.kernels(catalog().mlp_forward, spec_.layer_forward_ns);
  const Routing routed = routing(layer, microbatch);
  const int own = place_.replica % spec_.expert_group();
  out_.kernels(catalog().router, spec_.layer_forward_ns);
  exchange_tokens(routed, true);
  out_.kernels(catalog().experts_forward, routed.share_of_work(own, spec_.layer_forward_ns));
  exchange_tokens(routed, false);
  out_.kernels(catalog().merge, spec_.layer_forward_ns);
}

void RankSchedule::backward_mlp(int layer, int microbatch) {
  const Ns time = 2 * spec_.layer_forward_ns;
  if (!spec_.moe) return out_.kernels(catalog().mlp_backward, time);
  const Routing routed = routing(layer, microbatch);
  const int own = place_.replica % spec_.expert_group();
  out_.kernels(catalog().merge, time);
  exchange_tokens(routed, true);
  out_.kernels(catalog().experts_backward, routed.share_of_work(own, time));
  exchange_tokens(routed, false);
  out_.kernels(catalog().router, time);
}

void RankSchedule::forward_layer(int layer, int microbatch) {
  gather_ahead(layer + 1);
  wait_for_parameters(layer);
  out_.kernels(catalog().attention_forward, spec_.layer_forward_ns);
  tensor_all_reduce();
  forward_mlp(layer, microbatch);
  tensor_all_reduce();
}

void RankSchedule::backward_layer(int layer, int microbatch) {
  gather_ahead(layer - 1);
  wait_for_parameters(layer);
  backward_mlp(layer, microbatch);
  tensor_all_reduce();
  collect_gradients(Half::mlp, microbatch);
  out_.kernels(catalog().attention_backward, 2 * spec_.layer_forward_ns);
  tensor_all_reduce();
  collect_gradients(Half::attention, microbatch);
  scatter_gradients();
}

// --- Passes ---

void RankSchedule::receive_activation(int from, int stream) {
  out_.wait(out_.receive(from, stream, activation_elements()));
}

void RankSchedule::send_activation(int to, int stream) {
  outstanding_.push_back(out_.send(to, stream, activation_elements()));
}

void RankSchedule::forward(int microbatch) {
  gather_ahead(0);
  if (!first_stage()) receive_activation(previous_rank(), kRecvPreviousStream);
  if (first_stage()) out_.kernels(catalog().embedding_forward, spec_.embedding_ns);
  for (int layer = 0; layer < place_.layers; ++layer) forward_layer(layer, microbatch);
  if (last_stage()) {
    out_.kernels(catalog().loss_forward, spec_.loss_ns);
  } else {
    send_activation(next_rank(), kSendNextStream);
  }
}

void RankSchedule::backward(int microbatch) {
  gather_ahead(place_.layers - 1);
  if (!last_stage()) receive_activation(next_rank(), kRecvNextStream);
  if (last_stage()) out_.kernels(catalog().loss_backward, spec_.loss_ns);
  for (int layer = place_.layers - 1; layer >= 0; --layer) backward_layer(layer, microbatch);
  if (first_stage()) {
    out_.kernels(catalog().embedding_backward, spec_.embedding_ns);
  } else {
    send_activation(previous_rank(), kSendPreviousStream);
  }
}

// Stages near the end start with fewer forwards in flight; without a pipeline this is forward,
// backward in turn.
void RankSchedule::one_forward_one_backward() {
  const int warm_up = std::min(spec_.pp - 1 - place_.stage, spec_.microbatches);
  for (int microbatch = 0; microbatch < warm_up; ++microbatch) forward(microbatch);
  for (int microbatch = 0; microbatch < spec_.microbatches; ++microbatch) {
    if (warm_up + microbatch < spec_.microbatches) forward(warm_up + microbatch);
    backward(microbatch);
  }
}

void RankSchedule::optimizer() {
  if (bucket_ > 0) send_bucket(bucket_);
  bucket_ = 0;
  for (const Pending& pending : outstanding_) out_.wait(pending);
  outstanding_.clear();
  out_.kernels(catalog().optimizer, spec_.optimizer_ns);
}

void RankSchedule::run_step(int index) {
  constexpr Ns kCopyIn = 40'000;  // tokens of a batch over PCIe
  constexpr Ns kCopyOut = 2'000;  // one number
  constexpr Ns kSet = 30'000;
  step_ = index;
  out_.begin(RangeKind::step, fmt::format("ProfilerStep#{}", spec_.first_step + index));
  out_.work(spec_.input_ns);
  out_.copy("Memcpy HtoD (Pinned -> Device)", 1'048'576, kCopyIn);
  out_.set(spec_.bucket_bytes, kSet);
  one_forward_one_backward();
  optimizer();
  out_.copy("Memcpy DtoH (Device -> Pageable)", 4, kCopyOut);
  out_.sync_compute();
  out_.end();
}

}  // namespace

void write_schedule(Plan& plan, SharedParts& shared, int rank) {
  RankSchedule schedule(plan, shared, rank);
  for (int step = 0; step < plan.spec.steps; ++step) schedule.run_step(step);
}

}  // namespace commlens::simulate
