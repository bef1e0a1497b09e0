// What nccl-tests writes itself with -J FILE (since version 2.17.5 of its own).
#pragma once

#include <string_view>
#include <vector>

#include "base/source.h"
#include "ingest/nccl_tests_lines.h"

namespace commlens {

// Sample, on one line:
//
//   {"version":2,"start_time":"...","args":["build\/all_reduce_perf","-g","8"],
//    "env":["HOME=\/root",...],"nccl_version":22803,
//    "config":{"nthreads":1,"ngpus":8,...,"iterations":20,...,
//      "devices":[{"rank":0,"group":0,"pid":42,"hostname":"node-a",...}]},
//    "results":[{"size":1048576,"count":262144,"type":"float","redop":"sum","root":"    -1",
//      "out_of_place":{"time":74.780000,"alg_bw":14.02,"bus_bw":24.54,"nwrong":0.000000},
//      "in_place":{...},"actual_iterations":20,"experiment_name":"..."},...],...}
//
// "env" is the whole environment of the process: nothing of it is kept. "cpu_time" stands for
// "time" with -C, null for a way that was not measured and for unchecked results, "nan" in quotes.
struct NcclTestsFile {
  std::optional<Op> op;
  std::int64_t ranks = 0;  // 0: not told
  std::int64_t hosts = 0;
  std::int64_t iterations = 0;  // 0: not told
  std::vector<NcclTestsRow> rows;
  std::int64_t odd_rows = 0;  // without a size
  std::string truncation;     // where it ends early; empty: it is whole
};

// Whether a text that begins so is such a file.
bool is_nccl_tests_file(std::string_view head);

// Throws Error(input) for text that is no JSON.
NcclTestsFile read_nccl_tests_file(std::string_view text, const std::string& name);

// All of a source behind `head`, with it.
std::string read_nccl_tests_text(Source& source, std::string_view head);

}  // namespace commlens
