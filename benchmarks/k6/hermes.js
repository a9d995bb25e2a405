// The profile hermes under load: publishes that succeed, order, latency, and no error at all.
//
//   k6 run -e GRPC=localhost:50051 -e HTTP=localhost:8080 benchmarks/k6/hermes.js
//
// Each virtual user publishes numbered messages to a topic of its own, over gRPC and over HTTP, and at
// the end replays the topic: every message has to be there once, in the order in which it was answered.

import { check } from "k6";
import { b64decode, b64encode } from "k6/encoding";
import exec from "k6/execution";
import http from "k6/http";
import { Counter, Trend } from "k6/metrics";
import { Client, StatusOK, Stream } from "k6/net/grpc";

const GRPC = __ENV.GRPC || "localhost:50051";
const HTTP = __ENV.HTTP || "localhost:8080";
const USERS = Number(__ENV.USERS || 4);
const MESSAGES = Number(__ENV.MESSAGES || 100);
const P95_MS = Number(__ENV.P95_MS || 250);
const RUN = __ENV.RUN || `${Date.now()}`;

const failures = new Counter("failures");
const outOfOrder = new Counter("out_of_order");
const replayed = new Counter("replayed");
const publishing = new Trend("publish_ms", true);

export const options = {
  scenarios: {
    users: { executor: "per-vu-iterations", vus: USERS, iterations: 1, maxDuration: "60s" },
  },
  thresholds: {
    checks: ["rate==1"],
    failures: ["count==0"],
    out_of_order: ["count==0"],
    replayed: [`count==${USERS * MESSAGES}`],
    publish_ms: [`p(95)<${P95_MS}`],
    http_req_failed: ["rate==0"],
  },
};

const client = new Client();
client.load([import.meta.resolve("../../proto/compat")], "hermes.proto");

export default async function () {
  const topic = `k6-hermes-${RUN}-${exec.vu.idInTest}`;
  client.connect(GRPC, { plaintext: true });
  for (let number = 0; number < MESSAGES; number++) {
    const began = Date.now();
    if (number % 10 === 9) {
      const body = JSON.stringify({ topic, payload: String(number), mode: 0 });
      const answer = http.post(`http://${HTTP}/publish`, body);
      record(answer.status === 200 && answer.json("success") === true, answer.body);
    } else {
      const request = { topic, payload: b64encode(String(number)), mode: number % 2 };
      const answer = client.invoke("broker.BrokerService/Publish", request);
      record(answer.status === StatusOK && answer.message.success, JSON.stringify(answer.error));
    }
    publishing.add(Date.now() - began);
  }
  await replay(topic);
  client.close();
}

function record(ok, why) {
  if (!check(ok, { published: (one) => one === true })) {
    failures.add(1);
    console.error(why);
  }
}

function replay(topic) {
  return new Promise((resolve) => {
    const stream = new Stream(client, "broker.BrokerService/Subscribe");
    let expected = 0;
    stream.on("data", (message) => {
      const number = Number(b64decode(message.payload, "std", "s"));
      if (number !== expected) outOfOrder.add(1);
      expected = number + 1;
      replayed.add(1);
      if (number === MESSAGES - 1) stream.end();
    });
    stream.on("error", (error) => {
      failures.add(1);
      console.error(JSON.stringify(error));
      resolve();
    });
    stream.on("end", resolve);
    stream.write({ topic, action: "SUBSCRIBE", group_id: "__REPLAY__" });
  });
}
