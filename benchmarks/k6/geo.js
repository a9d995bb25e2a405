// The profile geo under load: UUIDs, many topics in one stream in timestamp order, latency, no error.
//
//   k6 run -e GRPC=localhost:8070 -e USER=angarium -e PASSWORD=angarium benchmarks/k6/geo.js
//
// Virtual users publish to three topics of their own and then subscribe to all three at once, from
// the beginning: timestamps have to grow, and every message comes once.

import { check } from "k6";
import { b64decode, b64encode } from "k6/encoding";
import exec from "k6/execution";
import { Counter, Trend } from "k6/metrics";
import { Client, StatusOK, StatusUnauthenticated, Stream } from "k6/net/grpc";

const GRPC = __ENV.GRPC || "localhost:8070";
const USERS = Number(__ENV.USERS || 4);
const MESSAGES = Number(__ENV.MESSAGES || 99);
const P95_MS = Number(__ENV.P95_MS || 250);
const RUN = __ENV.RUN || `${Date.now()}`;
const USER = __ENV.GEO_USER || "admin";
const PASSWORD = __ENV.GEO_PASSWORD || "password";

const failures = new Counter("failures");
const outOfOrder = new Counter("out_of_order");
const received = new Counter("received");
const publishing = new Trend("publish_ms", true);

const proof = (password) => ({
  metadata: { authorization: `basic ${b64encode(`${USER}:${password}`)}` },
});
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

export const options = {
  scenarios: {
    users: { executor: "per-vu-iterations", vus: USERS, iterations: 1, maxDuration: "60s" },
  },
  thresholds: {
    checks: ["rate==1"],
    failures: ["count==0"],
    out_of_order: ["count==0"],
    received: [`count==${USERS * MESSAGES}`],
    publish_ms: [`p(95)<${P95_MS}`],
  },
};

const client = new Client();
client.load([import.meta.resolve("../../proto/compat")], "geo.proto");

export default async function () {
  const topics = ["red", "green", "blue"].map((one) => `k6-geo-${RUN}-${exec.vu.idInTest}-${one}`);
  client.connect(GRPC, { plaintext: true });
  const stranger = client.invoke(
    "broker.Broker/Publish",
    { topic: topics[0], body: b64encode("no") },
    proof(`${PASSWORD}?`),
  );
  record(stranger.status === StatusUnauthenticated, stranger);
  const ids = {};
  for (let number = 0; number < MESSAGES; number++) {
    const request = { topic: topics[number % 3], body: b64encode(String(number)) };
    // The very first check of a password takes its time, on purpose.
    const began = Date.now();
    const answer = client.invoke("broker.Broker/Publish", request, proof(PASSWORD));
    if (number > 0) publishing.add(Date.now() - began);
    record(answer.status === StatusOK && UUID.test(answer.message.id), answer);
    ids[number] = answer.message && answer.message.id;
  }
  await read(topics, ids);
  client.close();
}

function record(ok, answer) {
  if (!check(ok, { "as promised": (one) => one === true })) {
    failures.add(1);
    console.error(JSON.stringify(answer));
  }
}

function read(topics, ids) {
  return new Promise((resolve) => {
    const stream = new Stream(client, "broker.Broker/Subscribe", proof(PASSWORD));
    let expected = 0;
    let last = 0;
    stream.on("data", (message) => {
      const number = Number(b64decode(message.body, "std", "s"));
      const time = Number(message.timestamp);
      if (number !== expected || time <= last || message.id !== ids[number]) outOfOrder.add(1);
      expected = number + 1;
      last = time;
      received.add(1);
      if (expected === MESSAGES) {
        client.close();
        resolve();
      }
    });
    stream.on("error", (error) => {
      if (expected !== MESSAGES) {
        failures.add(1);
        console.error(JSON.stringify(error));
      }
      resolve();
    });
    stream.write({ topics: Object.fromEntries(topics.map((one) => [one, "0"])) });
    stream.end();
  });
}
