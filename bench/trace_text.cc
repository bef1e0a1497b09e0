#include "trace_text.h"

#include <array>
#include <cinttypes>
#include <cstdint>
#include <cstdio>

namespace commlens {
namespace {

constexpr std::array<const char*, 8> kKernels = {
    "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
    "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<c10::BFloat16>, "
    "std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<c10::BFloat16>, std::array<char*, "
    "3ul>)",
    "nvjet_tst_256x128_64x4_2x1_v_bz_coopA_TNT",
    "void flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64, 4, false, false, "
    "cutlass::bfloat16_t> >(Flash_fwd_params)",
    "triton_poi_fused__to_copy_mul_silu_3",
    "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous "
    "namespace)::TensorListMetadata<4> >(at::native::(anonymous namespace)::TensorListMetadata<4>)",
    "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_cgasize1x1x1_stage3_warpgroupsize1"
    "x1x1_tensor16x8x16_kernel",
};

// Appends what printf makes of a format and its values.
class Text {
 public:
  explicit Text(std::size_t bytes) { text_.reserve(bytes + 4096); }

  template <class... Values>
  void add(const char* format, Values... values) {
    char piece[2048];
    const int length = std::snprintf(piece, sizeof piece, format, values...);
    text_.append(piece, static_cast<std::size_t>(length));
  }
  void add(const char* text) { text_ += text; }

  std::size_t size() const { return text_.size(); }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

void add_python_frame(Text& text, std::int64_t number, std::int64_t at) {
  text.add(
      "  {\n    \"ph\": \"X\", \"cat\": \"python_function\", \"name\": "
      "\"torch/nn/modules/module.py(%" PRId64
      "): _call_impl\", \"pid\": 2910249, \"tid\": 2919752,\n    \"ts\": %" PRId64
      ".%03d, \"dur\": %" PRId64 ".250,\n    \"args\": {\n      \"Python parent id\": %" PRId64
      ", \"Python id\": %" PRId64 ", \"Ev Idx\": %" PRId64 "\n    }\n  },\n",
      1000 + number % 700, at, static_cast<int>(number % 1000), 40 + number % 90, number / 2,
      number, number);
}

void add_operation(Text& text, TraceMix mix, std::int64_t number, std::int64_t at) {
  text.add(
      "  {\n    \"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"aten::mm\", \"pid\": 2910249, "
      "\"tid\": 2919752,\n    \"ts\": %" PRId64
      ".417, \"dur\": 31.250,\n    \"args\": {\n      \"External id\": %" PRId64
      ",\"Record function id\": 0, ",
      at, number);
  if (mix == TraceMix::stack) {
    text.add(
        "\"Concrete Inputs\": [\"\", \"\"], \"Input type\": [\"c10::BFloat16\", "
        "\"c10::BFloat16\"], \"Input Strides\": [[4096, 1], [1, 4096]], \"Input Dims\": [[4096, "
        "4096], [4096, 11008]], ");
  }
  text.add("\"Ev Idx\": %" PRId64 "\n    }\n  },\n", number);
}

void add_runtime_call(Text& text, const char* name, std::int64_t number, std::int64_t at) {
  text.add(
      "  {\n    \"ph\": \"X\", \"cat\": \"cuda_runtime\", \"name\": \"%s\", \"pid\": 2910249, "
      "\"tid\": 2919752,\n    \"ts\": %" PRId64
      ".101, \"dur\": 4.750,\n    \"args\": {\n      \"External id\": %" PRId64
      ",      \"cbid\": 211, \"correlation\": %" PRId64 "\n    }\n  },\n",
      name, at, number, number);
}

void add_arrow(Text& text, char phase, std::int64_t number, std::int64_t at) {
  text.add("  {\n    \"ph\": \"%c\", \"id\": %" PRId64 ", \"pid\": 0, \"tid\": 7, \"ts\": %" PRId64
           ".500,\n    \"cat\": \"ac2g\", \"name\": \"ac2g\"\n  },\n",
           phase, number, at);
}

// Every eleventh is a collective on a stream of its own.
void add_kernel(Text& text, std::int64_t number, std::int64_t at) {
  const bool collective = number % 11 == 0;
  const std::size_t name = static_cast<std::size_t>(collective ? number % 2 : 2 + number % 6);
  text.add(
      "  {\n    \"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"%s\", \"pid\": 0, \"tid\": %d,"
      "\n    \"ts\": %" PRId64
      ".312, \"dur\": 61.125,\n    \"args\": {\n      \"External "
      "id\": %" PRId64
      ",      \"queued\": 0, \"device\": 0, \"context\": 1,      \"stream\": "
      "%d, \"correlation\": %" PRId64
      ",      \"registers per thread\": 96,      \"shared "
      "memory\": 88000,      \"blocks per SM\": 0.181818,      \"warps per SM\": 3.090909,"
      "      \"grid\": [24, 1, 1],      \"block\": [544, 1, 1],      \"est. achieved "
      "occupancy %%\": 4",
      kernel_name(name), collective ? 20 : 7, at, number, collective ? 20 : 7, number);
  if (collective) {
    text.add(
        ", \"Collective name\": \"_allgather_base\", \"In msg nelems\": 7340032, \"Out msg "
        "nelems\": 58720256, \"Group size\": 8, \"dtype\": \"BFloat16\", \"In split size\": "
        "\"[]\", \"Out split size\": \"[]\", \"Process Group Name\": \"1\", \"Process Group "
        "Description\": \"default_pg\", \"Process Group Ranks\": \"[0, 1, 2, 3, 4, 5, 6, 7]\","
        " \"Seq\": %" PRId64,
        number);
  }
  text.add("\n    }\n  },\n");
}

}  // namespace

std::string trace_text(TraceMix mix, std::size_t bytes) {
  Text text(bytes);
  text.add(
      "{\n  \"schemaVersion\": 1,\n  \"distributedInfo\": {\"backend\": \"nccl\", \"rank\": "
      "0, \"world_size\": 8},\n  \"traceEvents\": [\n");
  for (std::int64_t number = 1; text.size() < bytes; ++number) {
    const std::int64_t at = 1740461679479000 + number * 70;
    for (int frame = 0; mix == TraceMix::stack && frame < 6; ++frame)
      add_python_frame(text, number * 6 + frame, at + frame);
    add_operation(text, mix, number, at + 8);
    add_operation(text, mix, number, at + 9);
    add_runtime_call(text, "cudaStreamIsCapturing", number, at + 10);
    add_runtime_call(text, "cudaLaunchKernel", number, at + 12);
    add_arrow(text, 's', number, at + 12);
    add_kernel(text, number, at + 20);
    add_arrow(text, 'f', number, at + 20);
  }
  text.add(
      "  {\n    \"name\": \"process_name\", \"ph\": \"M\", \"ts\": 0, \"pid\": 2910249, "
      "\"tid\": 0,\n    \"args\": {\n      \"name\": \"python3\"\n    }\n  }\n  ],\n  "
      "\"displayTimeUnit\": \"ms\"\n}\n");
  return text.take();
}

std::size_t kernel_name_count() { return kKernels.size(); }
const char* kernel_name(std::size_t i) { return kKernels[i]; }

}  // namespace commlens
