// What a Node service does with the broker, with gRPC's own library; each case is told in a line.
//
//     node story.mjs HOST:PORT TOPIC FOLDER-OF-PROTO
import { createRequire } from "node:module";

// Libraries are found from where this is run, not from where this lies.
const require = createRequire(`${process.cwd()}/`);
const grpc = require("@grpc/grpc-js");
const { loadSync } = require("@grpc/proto-loader");

const [address, topic, proto] = process.argv.slice(2);
const TOGETHER = 100;
const STREAMED = 500;
const LARGE = 700_000;

const options = { includeDirs: [proto], defaults: true, longs: String };
const definition = loadSync("angarium/v1/broker.proto", options);
const { Broker } = grpc.loadPackageDefinition(definition).angarium.v1;
const broker = new Broker(address, grpc.credentials.createInsecure());
const squeezed = new Broker(address, grpc.credentials.createInsecure(), {
  "grpc.default_compression_algorithm": 2,
});

const soon = () => ({ deadline: Date.now() + 30_000 });
const request = (value) => ({ topic, record: { value: Buffer.from(value) } });
const opening = { open: { interests: [{ topic, start: { earliest: {} } }] } };

function called(name, given, client = broker) {
  return new Promise((resolve, reject) => {
    client[name](given, soon(), (error, answer) => (error ? reject(error) : resolve(answer)));
  });
}

function ended(stream) {
  return new Promise((resolve) => {
    stream.on("error", resolve);
    stream.on("end", () => resolve(null));
  });
}

function expect(error, code) {
  if (error?.code !== code) throw new Error(`status ${code} was expected, and ${error} came`);
}

async function publish(value, client = broker) {
  const { ack } = await called("Publish", request(value), client);
  if (ack.offset === undefined) throw new Error(`no offset in ${JSON.stringify(ack)}`);
}

async function publishStream() {
  const stream = broker.PublishStream(soon());
  let next = 0;
  let wrong = null;
  stream.on("data", ({ results }) => {
    for (const one of results) {
      if (one.number !== String(next) || one.error) wrong ??= `${next}: ${JSON.stringify(one)}`;
      next += 1;
    }
  });
  const end = ended(stream);
  for (let number = 0; number < STREAMED; number += 1) {
    stream.write({ number, publish: request(`streamed ${number}`) });
  }
  stream.end();
  const error = await end;
  if (error) throw error;
  if (wrong !== null || next !== STREAMED) throw new Error(`${next} results; ${wrong}`);
}

async function subscribe() {
  const stream = broker.Subscribe(soon());
  const wanted = 3 + TOGETHER + STREAMED;
  let next = 0;
  let wrong = null;
  stream.on("data", ({ records }) => {
    for (const one of records) {
      if (one.offset !== String(next)) wrong ??= `offset ${one.offset} instead of ${next}`;
      next += 1;
    }
    if (next >= wanted) stream.cancel();
  });
  const end = ended(stream);
  stream.write(opening);
  expect(await end, grpc.status.CANCELLED);
  if (wrong !== null) throw new Error(wrong);
  await publish("after a cancelled call"); // the connection lives on
}

async function deadline() {
  const stream = broker.Subscribe({ deadline: Date.now() + 300 });
  stream.resume();
  const end = ended(stream);
  stream.write(opening);
  expect(await end, grpc.status.DEADLINE_EXCEEDED);
}

async function errorDetails() {
  const error = await called("DescribeTopic", { name: "no-such-topic" }).then(
    () => null,
    (one) => one,
  );
  expect(error, grpc.status.NOT_FOUND);
  const [code] = error.metadata.get("x-angarium-code");
  if (code !== "NOT_FOUND") throw new Error(`x-angarium-code is ${code}`);
  const [details] = error.metadata.get("grpc-status-details-bin");
  if (!details?.includes("google.rpc.ErrorInfo")) throw new Error(`details are ${details}`);
}

async function unimplemented() {
  const as = (one) => one;
  for (const method of ["/angarium.v1.Broker/Nothing", "/angarium.v1.Nobody/Publish"]) {
    const error = await new Promise((resolve) => {
      broker.makeUnaryRequest(method, as, as, Buffer.alloc(0), soon(), resolve);
    });
    expect(error, grpc.status.UNIMPLEMENTED);
  }
}

async function tell(name, work) {
  try {
    await work();
    console.log(`ok ${name}`);
  } catch (error) {
    process.exitCode = 1;
    console.log(`FAILED ${name}: ${error}`);
  }
}

await tell("create_topic", () => called("CreateTopic", { name: topic, partitions: 1 }));
await tell("publish", () => publish("the road is clear"));
await tell("publish_large", () => publish(Buffer.alloc(LARGE)));
await tell("publish_gzip", () => publish("clear ".repeat(2_000), squeezed));
await tell("publish_together", () =>
  Promise.all(Array.from({ length: TOGETHER }, (_, number) => publish(`together ${number}`))),
);
await tell("publish_stream", publishStream);
await tell("subscribe_and_cancel", subscribe);
await tell("deadline", deadline);
await tell("error_details", errorDetails);
await tell("unimplemented", unimplemented);
broker.close();
squeezed.close();
