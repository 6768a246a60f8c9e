"""The embedded queue is said to answer only once it has read its file in: until then it refuses every bell."""

import redis

from labsite.embedded.home import Home
from labsite.embedded.servers import running_servers

MANY = "for number = 1, 300000 do redis.call('set', number, number) end"


def test_a_start_waits_until_the_queue_has_read_its_file_in(open_home: Home) -> None:
    with open_home.locked(), running_servers(open_home, {}, throw_away=True) as servers:
        client = redis.Redis.from_url(servers.addresses["REDIS_URL"])
        client.eval(MANY, 0)
        client.close()
    with open_home.locked(), running_servers(open_home, {}, throw_away=True) as servers:
        client = redis.Redis.from_url(servers.addresses["REDIS_URL"])
        assert client.dbsize() == 300_000
        client.close()
