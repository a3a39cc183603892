#!/usr/bin/env python3
"""Has tshark decode what the guest captured, as a pair of eyes that knows nothing of this code.

    tests/guest/captures.py roce FILE PRINTER     SDP on RoCE: tshark's fields against those of PRINTER, the core's own
                                                  decoder (//tests/sdp/wire:print_messages), and against the rules of
                                                  sequence and credits
    tests/guest/captures.py iwarp FILE            MPA, DDP and RDMAP on TCP: nothing malformed

Prints a line that begins with PASS or FAIL for each question; the exit code is 0 only when none failed.

What tshark 4.0 does not do well: an SDP message longer than a packet arrives as First, Middle and Last and only the first
is SDP; a Data message without payload is called malformed; a Hello inside a request is not decoded.
"""

import subprocess
import sys

SEND_FIRST, SEND_ONLY, SEND_ONLY_WITH_INVALIDATE = 0, 4, 23
INVALIDATE_HEADER = 4
BASE_HEADER = 16
DATA, ADVERTS = 0xFF, {0xFD, 0xFE}
FLAGS = {"oob_pres": 1, "oob_pend": 2, "req_pipe": 4}
FIELDS = ["mid", "flags", "bufs", "len", "mseq", "mseqack"]

failed = 0


def verdict(name, wrong):
    """`wrong`: what contradicts it; nothing passes."""
    global failed
    print(("FAIL" if wrong else "PASS"), "guest.tshark." + name)
    for text in wrong[:5]:
        print("  ", text)
    failed += bool(wrong)


def tshark(path, query, fields, options=()):
    command = ["tshark", "-r", path, *options, "-Y", query, "-T", "fields", "-E", "separator=|", "-E", "occurrence=f"]
    for field in fields:
        command += ["-e", field]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [line.split("|") for line in done.stdout.splitlines()]


def payload_of(opcode, udp_payload):
    """The SDP bytes of a packet: behind the base transport header, before the invariant CRC."""
    data = bytes.fromhex(udp_payload.replace(":", ""))
    begin = 12 + (INVALIDATE_HEADER if opcode == SEND_ONLY_WITH_INVALIDATE else 0)
    return data[begin:-4]


def number(text):
    """Also of flags by their names."""
    if text[:1].isalpha():
        return sum(FLAGS[name] for name in text.split("|"))
    return int(text, 0)


def messages(path):
    rows = tshark(path, "infiniband_sdp && infiniband.bth.opcode in {0,4,23}",
                  ["frame.number", "ip.src", "infiniband.bth.destqp", "infiniband.bth.opcode", "infiniband.bth.psn",
                   "udp.payload"] + ["infiniband_sdp.bsdh." + field for field in FIELDS])
    found = []
    for row in rows:
        fields = dict(zip(FIELDS, (number(text) for text in row[6:])))
        if fields["mid"] == 0 and fields["len"] == 0:
            continue  # the zeros of a ready-to-use message of the connection manager
        found.append({"frame": row[0], "to": (row[1], row[2]), "opcode": number(row[3]), "psn": number(row[4]),
                      "bytes": payload_of(number(row[3]), row[5]), **fields})
    return found


def compare_with_printer(found, printer):
    # The decoder wants a whole message: of one that goes on in other packets it is given the header alone.
    lines = "\n".join((one["bytes"][: one["len"]] + bytes(max(0, one["len"] - len(one["bytes"])))).hex() for one in found)
    done = subprocess.run([printer], input=lines + "\n", capture_output=True, text=True, check=True)
    wrong = []
    for one, text in zip(found, done.stdout.splitlines()):
        ours = dict(pair.split("=", 1) for pair in text.split() if "=" in pair)
        for field in FIELDS[1:]:
            if field not in ours or number(ours[field]) != one[field]:
                wrong.append(f"frame {one['frame']}: tshark says {field}={one[field]}, we: {text}")
                break
    return wrong


def connections_of(path):
    """The two directions of each connection, from its reply on: (frame, one direction, the other)."""
    asked, made = {}, []
    for frame, source, request, caller, reply_to, callee in tshark(
            path, "infiniband.cm.req || infiniband.cm.rep",
            ["frame.number", "ip.src", "infiniband.cm.req", "infiniband.cm.req.localqpn",
             "infiniband.cm.rep.remotecommid", "infiniband.cm.rep.localqpn"]):
        if request:
            asked[number(request)] = (source, number(caller))
        elif number(reply_to) in asked:
            other, queue_pair = asked[number(reply_to)]
            made.append((int(frame), (other, number(callee)), (source, queue_pair)))
    return made


def sent_before(one, state):
    """Whether a packet is one of those that a queue pair sends once more, from any point back, where an acknowledgement is
    late: its packet number says so, and it carries what it carried before."""
    ahead = (one["psn"] - state.get("psn", one["psn"] - 1)) % 2**24
    if 0 < ahead < 2**23:
        state["psn"] = one["psn"]
        state["carried"][one["psn"]] = one["bytes"]
        return False
    return state["carried"].get(one["psn"]) == one["bytes"]


def direction(other):
    return {"sent": None, "carried": {}, "other": other}


def check_streams(found, made):
    """[4.1 to 4.5] Numbers without gaps; nothing acknowledged that was not sent; never more on the way than Bufs."""
    gaps, early, beyond = [], [], []
    states, made = {}, list(made)
    for one in found:
        while made and made[0][0] < int(one["frame"]):
            _, there, back = made.pop(0)
            states[there], states[back] = direction(back), direction(there)
        state = states.get((one["to"][0], number(one["to"][1])))
        if state is None:
            early.append(f"frame {one['frame']}: of no connection")
            continue
        if sent_before(one, state):
            continue
        other = states[state["other"]]
        if state["sent"] is not None and one["mseq"] != (state["sent"] + 1) % 2**32:
            gaps.append(f"frame {one['frame']}: {one['mseq']} behind {state['sent']}")
        state["sent"] = one["mseq"]
        state["bufs"], state["ack"] = one["bufs"], one["mseqack"]
        if other["sent"] is None:
            continue
        if (other["sent"] - one["mseqack"]) % 2**32 >= 2**31:
            early.append(f"frame {one['frame']}: {one['mseqack']} is acknowledged, {other['sent']} was sent last")
        if (one["mseq"] - other["ack"]) % 2**32 > other["bufs"]:
            beyond.append(f"frame {one['frame']}: {one['mseq']} with {other['bufs']} buffers behind {other['ack']}")
    return gaps, early, beyond


def roce(path, printer):
    found = messages(path)
    verdict("sdp_on_roce_is_recognised", [] if len(found) > 50 else [f"{len(found)} messages only"])
    kinds = {one["mid"] for one in found}
    verdict("sdp_carries_copies_and_adverts", [] if DATA in kinds and kinds & ADVERTS else [f"only {sorted(kinds)}"])
    whole = [one for one in found if one["opcode"] != SEND_FIRST]
    verdict("sdp_lengths_are_the_packets",
            [f"frame {one['frame']}: {one['len']} of {len(one['bytes'])}" for one in whole
             if not 0 <= len(one["bytes"]) - one["len"] < 4])
    verdict("sdp_fields_are_ours", compare_with_printer(found, printer))
    gaps, early, beyond = check_streams(found, connections_of(path))
    verdict("sdp_sequence_has_no_gap", gaps)
    verdict("sdp_acknowledges_what_was_sent", early)
    verdict("sdp_credits_are_kept", beyond)


def iwarp(path):
    for layer in ("iwarp_mpa", "iwarp_ddp", "iwarp_rdma"):
        seen = tshark(path, layer, ["frame.number"])
        verdict(f"{layer}_is_recognised", [] if len(seen) > 50 else [f"{len(seen)} frames only"])
    # It takes some messages on RDMAP for RPC, and those for malformed RPC.
    bad = tshark(path, "_ws.malformed && iwarp_mpa", ["frame.number", "_ws.col.Info"], ["--disable-protocol", "rpcordma"])
    verdict("iwarp_has_no_malformed_frame", [" ".join(row) for row in bad])
    wrong = tshark(path, "iwarp_mpa.bad_length", ["frame.number"])
    verdict("iwarp_has_no_bad_length", [row[0] for row in wrong])


def main():
    if sys.argv[1] == "roce":
        roce(sys.argv[2], sys.argv[3])
    else:
        iwarp(sys.argv[2])
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
