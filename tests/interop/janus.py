"""A small client of the Janus API over HTTP long poll."""

import asyncio
import itertools

import aiohttp

_transactions = itertools.count(1)


class Handle:
    """A session with one plugin handle."""

    def __init__(self, http: aiohttp.ClientSession, address: str):
        self._http = http
        self._address = address
        self._answers: dict[str, asyncio.Future] = {}
        self.events: asyncio.Queue = asyncio.Queue()

    @classmethod
    async def attach(cls, http: aiohttp.ClientSession, server: str, plugin: str) -> "Handle":
        handle = cls(http, server)
        session = (await handle._post(server, {"janus": "create"}))["data"]["id"]
        handle._session = f"{server}/{session}"
        attached = await handle._post(handle._session, {"janus": "attach", "plugin": plugin})
        handle._address = f"{handle._session}/{attached['data']['id']}"
        handle._poll = asyncio.create_task(handle._long_poll())
        return handle

    async def message(self, body: dict, jsep: dict | None = None) -> dict:
        """Sends a message and gives the event that answers it."""
        transaction = str(next(_transactions))
        answer = self._answers[transaction] = asyncio.get_running_loop().create_future()
        request = {"janus": "message", "body": body} | ({"jsep": jsep} if jsep else {})
        await self._post(self._address, request, transaction)
        return await asyncio.wait_for(answer, 10)

    async def manage(self, body: dict) -> dict:
        """Sends a message that is answered at once, and gives what the plugin answers."""
        answer = await self._post(self._address, {"janus": "message", "body": body})
        return answer["plugindata"]["data"]

    async def told(self, member: str) -> dict:
        """What the plugin says in the next event that has this member; events before it are lost."""
        async with asyncio.timeout(40):
            while True:
                data = (await self.events.get()).get("plugindata", {}).get("data", {})
                if member in data:
                    return data

    async def close(self):
        self._poll.cancel()
        await self._post(self._session, {"janus": "destroy"})

    async def _long_poll(self):
        while True:
            async with self._http.get(self._session, params={"maxev": 1}) as response:
                event = await response.json()
            answer = self._answers.pop(event.get("transaction", ""), None)
            if answer:
                answer.set_result(event)
            elif event["janus"] != "keepalive":
                self.events.put_nowait(event)

    async def _post(self, address: str, request: dict, transaction: str | None = None) -> dict:
        request = request | {"transaction": transaction or str(next(_transactions))}
        async with self._http.post(address, json=request) as response:
            answer = await response.json()
        if answer["janus"] == "error":
            raise RuntimeError(f"{request['janus']}: {answer['error']}")
        return answer
