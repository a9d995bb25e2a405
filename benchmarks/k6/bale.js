// The profile bale under load: ids without a gap, order for live subscribers, latency, no error.
//
//   k6 run -e GRPC=localhost:8081 benchmarks/k6/bale.js
//
// Each virtual user subscribes to a subject of its own, publishes numbered messages to it, and fetches
// each by the id it was told. Ids have to count up from 0, and the subscriber gets everything in order.

import { check } from "k6";
import { b64decode, b64encode } from "k6/encoding";
import exec from "k6/execution";
import { Counter, Trend } from "k6/metrics";
import { Client, StatusInvalidArgument, StatusOK, Stream } from "k6/net/grpc";
import { setTimeout } from "k6/timers";

const GRPC = __ENV.GRPC || "localhost:8081";
const USERS = Number(__ENV.USERS || 4);
const MESSAGES = Number(__ENV.MESSAGES || 100);
const P95_MS = Number(__ENV.P95_MS || 250);
const RUN = __ENV.RUN || `${Date.now()}`;

const failures = new Counter("failures");
const outOfOrder = new Counter("out_of_order");
const received = new Counter("received");
const publishing = new Trend("publish_ms", true);
const fetching = new Trend("fetch_ms", true);

export const options = {
  scenarios: {
    users: { executor: "per-vu-iterations", vus: USERS, iterations: 1, maxDuration: "60s" },
  },
  thresholds: {
    checks: ["rate==1"],
    failures: ["count==0"],
    out_of_order: ["count==0"],
    received: [`count==${USERS * (MESSAGES + 1)}`],
    publish_ms: [`p(95)<${P95_MS}`],
    fetch_ms: [`p(95)<${P95_MS}`],
  },
};

const client = new Client();
client.load([import.meta.resolve("../../proto/compat")], "bale.proto");

export default async function () {
  const subject = `k6-bale-${RUN}-${exec.vu.idInTest}`;
  client.connect(GRPC, { plaintext: true });
  const everything = subscribed(subject);
  // A subscription is live only. The first message tells that it has begun: it is broadcast, and so
  // has no id, until it comes.
  await everything.begun;
  for (let number = 0; number < MESSAGES; number++) {
    const body = b64encode(String(number));
    let began = Date.now();
    const answer = client.invoke("broker.Broker/Publish", { subject, body, expirationSeconds: 0 });
    publishing.add(Date.now() - began);
    record(answer.status === StatusOK && answer.message.id === number, answer);
    began = Date.now();
    const found = client.invoke("broker.Broker/Fetch", { subject, id: number });
    fetching.add(Date.now() - began);
    record(found.status === StatusOK && found.message.body === body, found);
  }
  const missing = client.invoke("broker.Broker/Fetch", { subject, id: MESSAGES });
  record(missing.status === StatusInvalidArgument, missing);
  await everything.ended;
  client.close();
}

function record(ok, answer) {
  if (!check(ok, { "as promised": (one) => one === true })) {
    failures.add(1);
    console.error(JSON.stringify(answer));
  }
}

function subscribed(subject) {
  const stream = new Stream(client, "broker.Broker/Subscribe");
  let expected = 0;
  let isOn = false;
  let begin, end;
  const begun = new Promise((resolve) => (begin = resolve));
  const ended = new Promise((resolve) => (end = resolve));
  stream.on("data", (message) => {
    const text = b64decode(message.body, "std", "s");
    if (text === "begin") {
      if (!isOn) {
        isOn = true;
        received.add(1);
        begin();
      }
      return;
    }
    if (Number(text) !== expected) outOfOrder.add(1);
    expected = Number(text) + 1;
    received.add(1);
    if (expected === MESSAGES) {
      client.close();
      end();
    }
  });
  stream.on("error", (error) => {
    if (expected !== MESSAGES) {
      failures.add(1);
      console.error(JSON.stringify(error));
    }
    begin();
    end();
  });
  stream.write({ subject });
  stream.end();
  const knock = () => {
    if (isOn) return;
    client.invoke("broker.Broker/Broadcast", { subject, body: b64encode("begin") });
    setTimeout(knock, 50);
  };
  setTimeout(knock, 50);
  return { begun, ended };
}
