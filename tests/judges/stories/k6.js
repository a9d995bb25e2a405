// Virtual users publish one by one and by a stream, and subscribe; every check must hold.
import { check } from "k6";
import { b64encode } from "k6/encoding";
import grpc from "k6/net/grpc";

const { GRPC, TOPIC, PROTO } = __ENV;
const client = new grpc.Client();
client.load([PROTO], "angarium/v1/broker.proto");

export const options = {
  vus: 10,
  iterations: 100,
  thresholds: { checks: ["rate==1"] },
};

const record = { value: b64encode("the road is clear") };
const ok = (answer) => answer !== null && answer.status === grpc.StatusOK;

export function setup() {
  client.connect(GRPC, { plaintext: true, reflect: true });
  check(client.invoke("angarium.v1.Broker/CreateTopic", { name: TOPIC }), { created: ok });
  client.close();
}

export default function () {
  if (__ITER === 0) client.connect(GRPC, { plaintext: true });
  check(client.invoke("angarium.v1.Broker/Publish", { topic: TOPIC, record }), { stored: ok });
  if (__ITER !== 0) return;

  const publishing = new grpc.Stream(client, "angarium.v1.Broker/PublishStream");
  let answered = 0;
  publishing.on("data", (answer) => {
    answered += answer.results.length;
    if (answered === 20) check(answered, { "all of a stream were answered": () => true });
  });
  publishing.on("error", (error) => check(error, { "no stream fails": () => false }));
  for (let number = 0; number < 20; number += 1) {
    publishing.write({ number, publish: { topic: TOPIC, record } });
  }
  publishing.end();

  const reading = new grpc.Stream(client, "angarium.v1.Broker/Subscribe");
  let delivered = 0;
  reading.on("data", (answer) => {
    delivered += (answer.records || []).length;
    if (delivered === 10) check(delivered, { "a credit is delivered": () => true });
  });
  reading.on("error", (error) => check(error, { "no subscription fails": () => false }));
  const interests = [{ topic: TOPIC, start: { earliest: {} } }];
  reading.write({ open: { interests, credit: 10 } });
  reading.end(); // goes on until the credit is used up
}
