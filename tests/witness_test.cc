// Pickles and JSON as trees, and Flight Recorder dumps: whole, odd, cut and hostile.
#include <gtest/gtest.h>

#include <set>

#include "base/error.h"
#include "dump_job.h"
#include "ingest/json_tree.h"
#include "ingest/pickle.h"
#include "ingest/witness_format.h"

namespace commlens {
namespace {

using namespace std::string_literals;

// The tree as compact JSON-like text; "..." where a container was cut.
std::string shown(const Tree& tree, NodeId node) {
  if (node == kNoValue) return "nothing";
  switch (tree.kind(node)) {
    case NodeKind::null: return "null";
    case NodeKind::boolean: return *tree.boolean(node) ? "true" : "false";
    case NodeKind::integer: return std::to_string(*tree.integer(node));
    case NodeKind::real: return "real";
    case NodeKind::text: return "'" + std::string(tree.text(node)) + "'";
    case NodeKind::list:
    case NodeKind::dict: break;
  }
  const bool dict = tree.kind(node) == NodeKind::dict;
  std::string text = dict ? "{" : "[";
  const auto& items = tree.items(node);
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i > 0) text += dict && i % 2 == 1 ? ":" : ",";
    text += shown(tree, items[i]);
  }
  return text + (tree.cut(node) ? "..." : "") + (dict ? "}" : "]");
}

std::string pickled(const std::string& body) {
  const ReadTree read = read_pickle("\x80\x02"s + body, "f");
  return shown(read.tree, read.root);
}

std::string refusal(const std::string& text) {
  try {
    (void)read_pickle(text, "f");
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::input);
    return error.what();
  }
  return "accepted";
}

TEST(Pickle, Values) {
  EXPECT_EQ(pickled("K\x07."), "7");
  EXPECT_EQ(pickled("M\x01\x02."), "513");
  EXPECT_EQ(pickled("J\xff\xff\xff\xff."), "-1");
  EXPECT_EQ(pickled("\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x80."s), "-9223372036854775808");
  EXPECT_EQ(pickled("\x8a\x01\xff."), "-1");
  EXPECT_EQ(pickled("\x8a\x00."s), "0");
  EXPECT_EQ(pickled("G\x3f\xf0\x00\x00\x00\x00\x00\x00."s), "real");
  EXPECT_EQ(pickled("\x88."), "true");
  EXPECT_EQ(pickled("N."), "null");
  EXPECT_EQ(pickled("X\x02\x00\x00\x00hi."s), "'hi'");
  EXPECT_EQ(pickled("\x8c\x02hi."), "'hi'");
  EXPECT_EQ(pickled("I42\n."), "42");
  EXPECT_EQ(pickled("I01\n."), "true");
  EXPECT_EQ(pickled("L42L\n."), "42");
  EXPECT_EQ(pickled("F1.5\n."), "real");
  EXPECT_EQ(pickled("Vhi\n."), "'hi'");
}

TEST(Pickle, Containers) {
  EXPECT_EQ(pickled("](K\x01K\x02"s + "e."), "[1,2]");
  EXPECT_EQ(pickled("}(X\x01\x00\x00\x00"s + "aK\x01u."), "{'a':1}");
  EXPECT_EQ(pickled("](e."), "[]");
  EXPECT_EQ(pickled("K\x01K\x02\x86."), "[1,2]");
  EXPECT_EQ(pickled("(K\x01K\x02t."), "[1,2]");
  EXPECT_EQ(pickled("]K\x01"s + "a."), "[1]");
  EXPECT_EQ(pickled("}X\x01\x00\x00\x00"s + "aK\x01s."), "{'a':1}");
  EXPECT_EQ(pickled("(K\x01K\x02"s + "d."), "{1:2}");
  EXPECT_EQ(pickled("\x8f(K\x01\x90."), "[1]");
  EXPECT_EQ(pickled("K\x01K\x02"s + "0."), "1");
  EXPECT_EQ(pickled("K\x01(K\x02"s + "1."), "1");
  EXPECT_EQ(pickled("K\x01"s + "2\x86."), "[1,1]");
}

TEST(Pickle, MemosShareContainers) {
  EXPECT_EQ(pickled("]q\x00"s + "(K\x01"s + "eh\x00\x86."s), "[[1],[1]]");
  EXPECT_EQ(pickled("]\x94K\x01"s + "ah\x00\x86."s), "[[1],[1]]");
  EXPECT_EQ(pickled("]r\x00\x00\x00\x00j\x00\x00\x00\x00\x86."s), "[[],[]]");
}

TEST(Pickle, OnlyIdentitiesAreCalled) {
  const std::string call = "ctorch.jit._pickle\nbuild_intlist\n](K\x01"s + "e\x85R.";
  EXPECT_EQ(pickled(call), "[1]");
  EXPECT_NE(
      refusal("\x80\x02"s + "cos\nsystem\n(X\x02\x00\x00\x00lstR."s)
          .find("byte 2: pickle opcode 0x63 'c' would run code (os.system), which is refused"),
      std::string::npos);
  EXPECT_NE(refusal("\x80\x02K\x01K\x01\x85R."s).find("byte 7: pickle opcode 0x52 'R'"),
            std::string::npos);
}

TEST(Pickle, EveryOtherOpcodeIsRefusedWithItsPlace) {
  const std::string known = "NKMJGILFVXCUBT}](t)ledusa012qrphjgcR."s +
                            "\x80\x95\x88\x89\x8a\x8b\x8c\x8d\x8e\x8f\x90\x91\x94\x85\x86\x87";
  int refused = 0;
  for (int code = 0; code < 256; ++code) {
    if (known.find(static_cast<char>(code)) != std::string::npos) continue;
    const std::string said = refusal("\x80\x02N"s + static_cast<char>(code) + std::string(64, 'a'));
    EXPECT_NE(said.find("byte 3: pickle opcode 0x"), std::string::npos) << code << ": " << said;
    ++refused;
  }
  EXPECT_EQ(refused, 256 - 53);
}

TEST(Pickle, WhatIsNotThereIsRefused) {
  for (const std::string& body :
       {"a."s, "s."s, "u."s, "e."s, "t."s, "0."s, "1."s, "."s, "h\x05."s, "j\xff\xff\xff\x7f."s,
        "\x86."s, "K\x01r\xff\xff\xff\xff."s, "(K\x01"s + "d."s, "K\x01(K\x02"s + "e."s, "R."s,
        "(K\x01q\x00h\x00"s + "s."s}) {
    EXPECT_NE(refusal("\x80\x02"s + body).find("pickle opcode"), std::string::npos) << body;
  }
}

TEST(Pickle, ContainersInThemselvesAreRefused) {
  EXPECT_NE(refusal("\x80\x02]q\x00h\x00"s + "a."s).find("into itself"), std::string::npos);
  // Two that hold each other.
  EXPECT_NE(refusal("\x80\x02]q\x00]q\x01h\x00"s + "a0h\x00h\x01"s + "a."s).find("into itself"),
            std::string::npos);
}

TEST(Pickle, DepthIsBounded) {
  EXPECT_EQ(refusal("\x80\x02" + std::string(90, ']') + std::string(89, 'a') + "."), "accepted");
  EXPECT_NE(refusal("\x80\x02" + std::string(2000, ']') + std::string(1999, 'a') + ".")
                .find("more than 100 deep"),
            std::string::npos);
  EXPECT_NE(refusal("\x80\x02N" + std::string(100000, '\x85') + ".").find("more than 100 deep"),
            std::string::npos);
}

// Each list holds the one before twice: 2^60 values written out, a few hundred bytes here.
TEST(Pickle, SharedContainersAreNotWrittenOut) {
  std::string text = "\x80\x02]q\x00"s;
  for (char i = 0; i < 60; ++i) text += "h"s + i + "h" + i + "\x86q" + static_cast<char>(i + 1);
  const ReadTree read = read_pickle(text + ".", "f");
  EXPECT_LT(read.tree.size(), 200U);
}

TEST(Pickle, LengthsBeyondTheTextEndIt) {
  for (const std::string& body :
       {"X\xff\xff\xff\xff..."s, "\x8d\xff\xff\xff\xff\xff\xff\xff\xff..."s, "B\xff\xff\xff\x7f."s,
        "\x8b\xff\xff\xff\xff..."s}) {
    const ReadTree read = read_pickle("\x80\x02"s + body, "f");
    EXPECT_NE(read.truncation.find("ends at byte"), std::string::npos);
  }
}

TEST(Pickle, ACutTextGivesWhatWasComplete) {
  const std::string text = "\x80\x02}(X\x01\x00\x00\x00"s + "aK\x01X\x01\x00\x00\x00"s +
                           "b](}(X\x01\x00\x00\x00"s + "cK\x02u}(X\x01\x00\x00\x00"s + "cK\x03ueu.";
  const auto cut_at = [&text](std::size_t bytes) {
    const ReadTree read = read_pickle(std::string_view(text).substr(0, bytes), "f");
    return shown(read.tree, read.root);
  };
  EXPECT_EQ(cut_at(text.size()), "{'a':1,'b':[{'c':2},{'c':3}]}");
  EXPECT_EQ(cut_at(text.size() - 1), "{'a':1,'b':[{'c':2},{'c':3}]}");
  EXPECT_EQ(cut_at(text.size() - 3), "{'a':1,'b':[{'c':2},{'c':3}...]...}");
  EXPECT_EQ(cut_at(text.size() - 4), "{'a':1,'b':[{'c':2},{'c':3...}...]...}");
  EXPECT_EQ(cut_at(text.size() - 6), "{'a':1,'b':[{'c':2},{...}...]...}");
}

// ---- JSON

std::string json_shown(const std::string& text) {
  const ReadTree read = read_json_tree(text, "f");
  return shown(read.tree, read.root);
}

TEST(JsonTree, Values) {
  EXPECT_EQ(json_shown(R"( {"a": [1, -2.5, true, null, NaN, "x\n\"y"], "b": {}} )"),
            "{'a':[1,real,true,null,null,'x\n\"y'],'b':{}}");
  EXPECT_EQ(json_shown("[]"), "[]");
}

TEST(JsonTree, Faults) {
  for (const char* text : {"{1:2}", "{\"a\" 1}", "[1 2]", "[1}", "{\"a\":}", "[nope]", "]"}) {
    EXPECT_THROW((void)read_json_tree(text, "f"), Error) << text;
  }
  EXPECT_THROW((void)read_json_tree(std::string(5000, '['), "f"), Error);
}

TEST(JsonTree, ACutTextGivesWhatWasComplete) {
  EXPECT_EQ(json_shown(R"({"a": 1, "b": [{"c": 2}, {"c": )"), "{'a':1,'b':[{'c':2},{...}...]...}");
  EXPECT_EQ(json_shown(R"({"a": 1, "b)"), "{'a':1...}");
}

// ---- dumps

DumpJob small_job() {
  DumpJob job(2);
  job.add_group("7", "tp", {0, 1});
  job.all({.op = "_all_gather_base", .seq = 1, .state = "completed", .out = "[[2048]]"});
  job.all({.seq = 2, .group = "7", .in = "[[4, 8], [2]]"});
  job.call(0, {.op = "send 0->1", .seq = 3, .group = "7", .p2p = true});
  return job;
}

TEST(FlightRecorder, PickleAndJsonTellTheSame) {
  const DumpJob job = small_job();
  for (const std::string& text : {job.json(0), job.pickle(0)}) {
    ASSERT_EQ(detect_witness_format(text.substr(0, 4096)), find_witness_format("flight_recorder"));
    const Witness witness = read_dump("x/_dump_0", text);
    EXPECT_EQ(witness.rank, 0);
    EXPECT_EQ(witness.version, "2.9");
    EXPECT_EQ(witness.library, "NCCL 2.27.3");
    ASSERT_EQ(witness.groups.size(), 2U);
    EXPECT_EQ(witness.groups[1].name, "7");
    EXPECT_EQ(witness.groups[1].description, "tp");
    EXPECT_EQ(witness.groups[1].members, (std::vector<int>{0, 1}));
    ASSERT_EQ(witness.calls.size(), 3U);
    EXPECT_EQ(witness.calls[0].op, Op::all_gather);
    EXPECT_EQ(witness.calls[0].state, CallState::completed);
    EXPECT_EQ(witness.calls[1].in_elements, 34);
    EXPECT_EQ(witness.text(witness.calls[1].in_shape), "[[4, 8], [2]]");
    EXPECT_EQ(witness.text(witness.calls[1].in_dtype), "Float");
    EXPECT_TRUE(witness.calls[2].p2p);
    EXPECT_EQ(witness.calls[2].peer, 1);
    EXPECT_EQ(witness.calls[2].number, 3);
    ASSERT_EQ(witness.progress.size(), 2U);
    EXPECT_EQ(witness.progress[0].enqueued, 1);
    EXPECT_EQ(witness.progress[0].completed, 1);
    EXPECT_TRUE(witness.lists_pending);
    EXPECT_FALSE(witness.only_pending);
    EXPECT_FALSE(witness.notes.any());
  }
}

TEST(FlightRecorder, TheRank) {
  DumpJob job(4);
  job.add_group("1", "pair", {0, 2});
  job.all({.seq = 1});
  const std::string text = job.json(2);
  const auto rank = [&text](const std::string& path) { return read_dump(path, text).rank; };
  EXPECT_EQ(rank("d/_dump_2"), 2);
  EXPECT_EQ(rank("d/nccl_trace_rank_2"), 2);
  EXPECT_EQ(rank("d/comm_lib_trace_rank_0.json"), 0);
  EXPECT_EQ(rank("d/rank_2_of_4.pkl"), 2);
  EXPECT_EQ(rank("d/rank2-step100.json"), 2);
  EXPECT_THROW(rank("d/dump.json"), Error);
  EXPECT_THROW(rank("d/dump_9"), Error);  // no member of its groups
  job.add_group("2", "own", {2});
  const Witness alone = read_dump("d/dump.json", job.json(2));
  EXPECT_EQ(alone.rank, 2);
  EXPECT_EQ(alone.notes.count(Note::rank_from_groups), 1);
}

TEST(FlightRecorder, VersionsAndWhatTheyLack) {
  const Witness old =
      read_dump("d_0",
                R"({"version": "1.5", "entries": [{"record_id": 0, "pg_id": 3, "seq_id": 17,
          "profiling_name": "nccl:all_reduce", "state": "scheduled", "time_created_ns": 5}]})");
  ASSERT_EQ(old.calls.size(), 1U);
  EXPECT_EQ(old.calls[0].number, 17);
  EXPECT_EQ(old.groups[0].name, "3");
  EXPECT_EQ(old.notes.count(Note::dump_version), 1);
  const Witness new_one =
      read_dump("d_0", R"({"version": "2.10", "comm_lib_version": "2.29.1", "pg_config": {},
                 "pg_status": {"0": {"last_enqueued_collective": "-1"}}})");
  EXPECT_EQ(new_one.library, "NCCL 2.29.1");
  EXPECT_FALSE(new_one.notes.any() && new_one.notes.count(Note::dump_version) > 0);
}

TEST(FlightRecorder, OnlyTheLastSegmentCounts) {
  const auto entry = [](int record, int seq, int time) {
    return "{\"record_id\":" + std::to_string(record) + ",\"process_group\":[\"0\",\"\"]," +
           "\"collective_seq_id\":" + std::to_string(seq) +
           ",\"profiling_name\":\"nccl:all_reduce\",\"state\":\"scheduled\"," +
           "\"time_created_ns\":" + std::to_string(time) + "000000000}";
  };
  const Witness witness =
      read_dump("d_0", "{\"version\":\"2.10\",\"entries\":[" + entry(40, 41, 1) + "," +
                           entry(41, 42, 2) + "," + entry(0, 1, 3) + "," + entry(1, 2, 4) + "]}");
  ASSERT_EQ(witness.calls.size(), 2U);
  EXPECT_EQ(witness.calls[0].number, 1);
  EXPECT_EQ(witness.notes.count(Note::dump_segments), 2);
}

TEST(FlightRecorder, OddEntriesAreCountedAndTheOthersUsed) {
  const Witness witness = read_dump(
      "d_0", R"({"version": "2.9", "entries": [7, {}, {"profiling_name": "nccl:all_reduce"},
          {"profiling_name": "nccl:all_reduce", "process_group": ["0", ""]},
          {"profiling_name": "nccl:all_reduce", "process_group": ["0", ""],
           "collective_seq_id": 4, "input_sizes": [[-1], "x"], "state": 5}]})");
  EXPECT_EQ(witness.notes.count(Note::odd_entry), 4);
  ASSERT_EQ(witness.calls.size(), 1U);
  EXPECT_FALSE(witness.calls[0].in_shape.valid());
  EXPECT_EQ(witness.calls[0].state, CallState::unknown);
}

// Counters that are equal tell that nothing is pending; else what was called is not known.
TEST(FlightRecorder, ADumpWithoutEntriesIsSaid) {
  const auto read = [](const std::string& completed, const std::string& entries) {
    return read_dump("d_0", R"({"version": "2.9", "pg_config": {"0": {"desc": "", "ranks": "[0]"}},
        "pg_status": {"0": {"last_enqueued_collective": 5, "last_completed_collective": )" +
                                completed + "}}" + entries + "}");
  };
  EXPECT_FALSE(read("5", "").notes.any());
  EXPECT_FALSE(read("4", R"(, "entries": [])").notes.any());
  const Witness absent = read("4", "");
  EXPECT_EQ(absent.notes.count(Note::odd_entry), 1);
  EXPECT_FALSE(absent.lists_pending);
  const Witness text = read("5", R"(, "entries": "abc")");
  EXPECT_EQ(text.notes.count(Note::odd_entry), 1);
  EXPECT_TRUE(text.damaged);
  EXPECT_FALSE(text.lists_pending);
}

TEST(FlightRecorder, RanksThatCannotBeReadAreSaid) {
  const auto read = [](const std::string& ranks) {
    return read_dump("d_0", R"({"version": "2.9", "entries": [],
        "pg_config": {"0": {"desc": "", "ranks": )" +
                                ranks + "}}}");
  };
  for (const std::string fine : {R"("[0, 1]")", R"("[]")", R"("")", R"("[0, 1, ..., 7]")", "[0]"})
    EXPECT_FALSE(read(fine).notes.any()) << fine;
  for (const std::string odd :
       {R"("[0, 1, 99999999999999]")", R"("[0-7]")", R"("[0, -1]")", "[0, true]"}) {
    const Witness witness = read(odd);
    EXPECT_EQ(witness.notes.count(Note::odd_entry), 1) << odd;
    EXPECT_TRUE(witness.groups[0].members.empty());
  }
}

// A writer gives a key once. Of two values nobody knows which was meant; two equal ones do no harm.
TEST(FlightRecorder, AnEntryThatContradictsItselfIsLeftOut) {
  const auto read = [](const std::string& numbers) {
    return read_dump("d_0", R"({"version": "2.9", "entries": [{"profiling_name": "nccl:all_reduce",
        "process_group": ["0", ""], )" +
                                numbers + R"(, "state": "scheduled"}]})");
  };
  const Witness two = read(R"("collective_seq_id": 1, "collective_seq_id": 7)");
  EXPECT_EQ(two.calls.size(), 0U);
  EXPECT_EQ(two.notes.count(Note::odd_entry), 1);
  EXPECT_TRUE(two.damaged);
  const Witness same = read(R"("collective_seq_id": 7, "collective_seq_id": 7)");
  EXPECT_EQ(same.calls.size(), 1U);
  EXPECT_FALSE(same.damaged);
}

// One entry named again and again by its memo, and one list of sizes in many entries.
TEST(FlightRecorder, SharedPartsAreLookedAtOnce) {
  const auto text = [](const std::string& word) {
    return "\x8c"s + static_cast<char>(word.size()) + word;
  };
  std::string sizes = "](";
  for (int i = 0; i < 1000; ++i) sizes += "](K\x01K\x02"s + "e";
  std::string entry = "}(" + text("profiling_name") + text("nccl:all_reduce") +
                      text("process_group") + text("0") + "\x85" + text("collective_seq_id") +
                      "K\x01" + text("input_sizes") + sizes + "er\x07\x00\x00\x00"s + "u";
  std::string dump = "\x80\x04}(" + text("entries") + "](" + entry + "q\x01";
  for (int i = 0; i < 100000; ++i) dump += "h\x01";
  for (int i = 0; i < 20000; ++i)
    dump += "}(" + text("profiling_name") + text("nccl:x") + text("process_group") + text("0") +
            "\x85" + text("collective_seq_id") + "K\x02" + text("input_sizes") +
            "j\x07\x00\x00\x00u"s;
  const Witness witness = read_dump("d_0", dump + "eu.");
  EXPECT_EQ(witness.calls.size(), 20001U);
  EXPECT_EQ(witness.calls[20000].in_elements, 2000);
  EXPECT_EQ(witness.notes.count(Note::odd_entry), 100000);
}

// Nothing crashes, whatever is lost; what was complete is used, and nobody is accused because of
// what is lost.
TEST(FlightRecorder, CutAtEveryByte) {
  const DumpJob job = small_job();
  for (const std::string& text : {job.json(1), job.pickle(1)}) {
    std::set<std::size_t> calls;
    for (std::size_t bytes = 0; bytes < text.size(); ++bytes) {
      try {
        std::vector<Witness> both;
        both.push_back(read_dump("_dump_1", text.substr(0, bytes)));
        const Witness& cut = both.front();
        EXPECT_TRUE(cut.damaged);
        EXPECT_EQ(cut.notes.count(Note::truncated), 1);
        calls.insert(cut.calls.size());
        both.push_back(read_dump("_dump_0", job.json(0)));
        for (const DiagnosisFinding& finding : find_all(both))
          EXPECT_EQ(finding.confidence, Confidence::undecidable) << bytes << finding.message;
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::input);
      }
    }
    EXPECT_EQ(calls, (std::set<std::size_t>{0, 1, 2}));
  }
}

// One byte changed anywhere: an error in one sentence, or a witness.
TEST(FlightRecorder, DamagedAtEveryByte) {
  const DumpJob job = small_job();
  for (const std::string& text : {job.json(0), job.pickle(0)}) {
    for (std::size_t at = 0; at < text.size(); ++at) {
      for (const int change : {0x01, 0xA0}) {
        std::string damaged = text;
        damaged[at] = static_cast<char>(damaged[at] ^ change);
        try {
          std::vector<Witness> both;
          both.push_back(read_dump("_dump_0", damaged));
          if (at % 8 != 0) continue;
          both.push_back(read_dump("_dump_1", job.json(1)));
          (void)find_all(both);
        } catch (const Error& error) {
          EXPECT_EQ(error.kind(), ErrorKind::input);
        }
      }
    }
  }
}

}  // namespace
}  // namespace commlens
