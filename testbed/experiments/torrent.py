"""One member of a BitTorrent swarm, by libtorrent.

torrent.py make FILE TORRENT
    writes the torrent of a file, in pieces of 64 KiB

torrent.py share TORRENT FOLDER IP:PORT RESULT START PEER...
    listens and says so; once the file START is there, it joins the peers, brings
    what the folder lacks, writes to RESULT how many milliseconds that took since
    START came, and shares until it is told to end
"""

import json
import os
import sys
import time

import libtorrent

PIECE = 64 * 1024
POLL = 0.02


def make(path, torrent):
    files = libtorrent.file_storage()
    libtorrent.add_files(files, path)
    made = libtorrent.create_torrent(files, PIECE, libtorrent.create_torrent.v1_only)
    libtorrent.set_piece_hashes(made, os.path.dirname(path))
    with open(torrent, "wb") as out:
        out.write(libtorrent.bencode(made.generate()))


def share(torrent, folder, listen, result, start, *peers):
    session = libtorrent.session({
        "listen_interfaces": listen,
        "enable_dht": False,
        "enable_lsd": False,
        "enable_upnp": False,
        "enable_natpmp": False,
        "unchoke_slots_limit": -1,  # uploads to all peers at once
    })
    params = libtorrent.add_torrent_params()
    params.ti = libtorrent.torrent_info(torrent)
    params.save_path = folder
    handle = session.add_torrent(params)
    while not session.is_listening() or handle.status().state == libtorrent.torrent_status.checking_files:
        time.sleep(POLL)
    print(json.dumps({"ready": True}), flush=True)
    while not os.path.exists(start):
        time.sleep(POLL)
    began = time.monotonic()
    for peer in peers:
        address, port = peer.rsplit(":", 1)
        handle.connect_peer((address, int(port)))
    while not handle.status().is_seeding:
        time.sleep(POLL)
    took = (time.monotonic() - began) * 1000
    with open(result + ".new", "w", encoding="utf-8") as out:
        json.dump({"read_ms": [took]}, out)
    os.rename(result + ".new", result)
    while True:
        time.sleep(60)


if __name__ == "__main__":
    {"make": make, "share": share}[sys.argv[1]](*sys.argv[2:])
