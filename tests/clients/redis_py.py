"""redis_py.py PORT: what programs do with redis-py, each answer checked."""
import sys

import redis

port = int(sys.argv[1])
r = redis.Redis(host="127.0.0.1", port=port)
assert r.ping()
assert r.set("py:a", b"\x00\xff\r\n") is True
assert r.get("py:a") == b"\x00\xff\r\n"
assert r.get("py:none") is None
assert r.set("py:a", "1", nx=True) is None
assert r.set("py:a", "2", xx=True, get=True) == b"\x00\xff\r\n"
assert r.setnx("py:b", "1") is True and r.setnx("py:b", "1") is False
assert r.mset({"py:c": "3", "py:d": "4"}) is True
assert r.mget("py:c", "py:none", "py:d") == [b"3", None, b"4"]
assert r.exists("py:a", "py:none") == 1 and r.strlen("py:a") == 1 and r.type("py:a") == b"string"
assert r.getrange("py:c", 0, -1) == b"3"

with r.pipeline() as pipe:  # MULTI and EXEC, as it does by default.
    pipe.set("py:t", "1").get("py:t").delete("py:t").get("py:t")
    assert pipe.execute() == [True, b"1", 1, None]
with r.pipeline(transaction=False) as pipe:
    for i in range(2000):
        pipe.set("py:n:%04d" % i, "v%d" % i)
    assert pipe.execute() == [True] * 2000
assert sorted(r.scan_iter(match="py:n:*", count=100)) == [b"py:n:%04d" % i for i in range(2000)]
assert r.delete("py:a", "py:b", "py:none") == 2
assert r.dbsize() == 2002
assert r.execute_command("KV.RANGE", "py:n:", "py:n:0002") == [b"py:n:0000", b"v0", b"py:n:0001", b"v1"]
assert r.info()["redis_version"] and r.config_get("maxclients") and r.client_id() > 0
assert r.client_setname("tester") and r.client_getname() == "tester"
try:
    r.set("py:e", "1", ex=10)
    raise SystemExit("EX was taken")
except redis.ResponseError as error:
    assert "expire" in str(error)
try:
    r.execute_command("NOSUCH")
    raise SystemExit("an unknown command was taken")
except redis.ResponseError as error:
    assert str(error).startswith("unknown command")
