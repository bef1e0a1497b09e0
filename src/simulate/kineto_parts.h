// The pieces of a Kineto file that kineto_writer.cc puts together; nobody else includes this.
#pragma once

#include "simulate/kineto_text.h"
#include "simulate/profile.h"

namespace commlens::simulate {

// Everything before the events, up to and including the bracket that opens them.
void write_kineto_head(const Profile& profile, Sink& sink);

// A rank's communication as the collective arguments of an event.
// Those of the kernel.
void write_kernel_comms(KinetoText& text, const CommsRecord& record, bool with_seq);
// Those of record_param_comms: also what only the host knows.
void write_host_comms(KinetoText& text, const CommsRecord& record);
// Those of the record_param_comms that work.wait() leaves: no data, and the Seq of what is waited
// for.
void write_wait_comms(KinetoText& text, const CommsRecord& record);

}  // namespace commlens::simulate
