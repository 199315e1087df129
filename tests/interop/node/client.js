// What the Node client does with a cluster, told in rows, one JSON line each.
//
//   node client.js NAMESRV     (topics `node_NAME` with two queues are there)
//   node client.js --list
'use strict';

const COUNT = 6;
const SECONDS = 90; // queues are divided every ten seconds
const LARGE = '0123456789'.repeat(10_000);
const ODD = ['\u4e2d\u6587 \u00e9\u{1F680}', 'tag-\u00fc', 'k \u00e4'];
const FROM_FIRST = 'CONSUME_FROM_FIRST_OFFSET';

const pause = millis => new Promise(resolve => setTimeout(resolve, millis));

class Stage {
  constructor(name, nameServer, client) {
    Object.assign(this, { name, nameServer, client, topic: `node_${name}`, group: `g_node_${name}`, open: [] });
  }

  row(values) {
    process.stdout.write(`${JSON.stringify({ scenario: this.name, row: values })}\n`);
  }

  options(instanceName) {
    const logger = { info() {}, debug() {}, warn() {}, error: (...words) => console.error(...words) };
    // it wants a client of HTTP, though it asks none where it knows the name server
    return { nameSrv: this.nameServer, httpclient: {}, instanceName: `${this.name}_${instanceName}`, logger };
  }

  async producer() {
    const producer = new this.client.Producer({ ...this.options('p'), producerGroup: `p_node_${this.name}` });
    producer.on('error', error => console.error(error));
    await producer.ready();
    this.open.push(producer);
    return producer;
  }

  message(body, { tags = 'TagA', keys = [`key-${body.slice(0, 8)}`], level = 0, properties = {} } = {}) {
    const message = new this.client.Message(this.topic, tags, body);
    message.keys = keys;
    if (level) message.delayTimeLevel = level;
    Object.assign(message.properties, properties);
    return message;
  }

  async send(producer, ...words) {
    const sent = await producer.send(this.message(...words));
    this.row({ kind: 'sent', status: sent.sendStatus, id: Boolean(sent.msgId) });
  }

  async consume(want, { expression = '*', isBroadcast = false, fails = () => false, until = null } = {}) {
    let seen = 0;
    const consumer = new this.client.Consumer({
      ...this.options('c'), consumerGroup: this.group, consumeFromWhere: FROM_FIRST, isBroadcast,
    });
    consumer.on('error', error => console.error(error));
    consumer.subscribe(this.topic, expression, async message => {
      const body = message.body.toString();
      const failed = fails(message);
      this.row({
        kind: 'received', body: body.length < 100 ? body : `${body.length} characters`, tags: message.tags, keys: message.keys,
        n: message.properties.n, reconsumeTimes: message.reconsumeTimes, fails: failed,
      });
      seen += 1;
      return failed ? this.client.Consumer.ACTION_RETRY : undefined;
    });
    await consumer.ready();
    this.open.push(consumer);
    for (const end = Date.now() + SECONDS * 1000; seen < want && Date.now() < end;) await pause(20);
    if (seen < want) this.row({ failed: `${seen} of ${want} messages came within ${SECONDS} s` });
  }
}

const scenarios = {
  async push(stage) {
    const producer = await stage.producer();
    for (let n = 0; n < COUNT; n++) await stage.send(producer, `m${n}`, { tags: `t${n % 2}`, properties: { n } });
    await stage.consume(COUNT);
  },
  async tags(stage) {
    const producer = await stage.producer();
    for (let n = 0; n < COUNT; n++) await stage.send(producer, `m${n}`, { tags: `t${n % 3}` });
    await stage.consume(4, { expression: 't0 || t2' });
  },
  async sql(stage) {
    const producer = await stage.producer();
    for (let n = 0; n < COUNT; n++) await stage.send(producer, `m${n}`, { properties: { n } });
    await stage.consume(3, { expression: { expressionType: 'SQL92', subString: 'n > 2' } });
  },
  async delay(stage) {
    const producer = await stage.producer();
    for (const level of [2, 1]) await stage.send(producer, `level ${level}`, { level });
    await stage.consume(2);
  },
  // two of them fail once, and come again
  async retry(stage) {
    const producer = await stage.producer();
    for (let n = 0; n < COUNT; n++) await stage.send(producer, `m${n}`);
    await stage.consume(COUNT + 2, { fails: m => ['m1', 'm4'].includes(m.body.toString()) && !m.reconsumeTimes });
  },
  // a large body, which is compressed, and characters beyond ASCII
  async odd(stage) {
    const producer = await stage.producer();
    await stage.send(producer, LARGE, { keys: ['large'] });
    const [body, tags, keys] = ODD;
    await stage.send(producer, body, { tags, keys: [keys], properties: { n: body } });
    await stage.consume(2);
  },
  async errors(stage) {
    const producer = await stage.producer();
    for (const topic of ['node topic', 'node_errors']) {
      const message = new stage.client.Message(topic, 'TagA', topic === stage.topic ? Buffer.alloc(5_000_000, 'x') : 'a blank');
      producer.options.compressMsgBodyOverHowmuch = Infinity;
      try {
        await producer.send(message);
        stage.row({ kind: 'sent', topic });
      } catch (error) {
        stage.row({ kind: 'refused', topic, error: error.name, code: error.code });
      }
    }
  },
};

async function play(name, nameServer, client) {
  const stage = new Stage(name, nameServer, client);
  try {
    await scenarios[name](stage);
  } catch (error) {
    console.error(error);
    stage.row({ failed: String(error) });
  }
}

async function main() {
  if (process.argv[2] === '--list') {
    process.stdout.write(`${JSON.stringify(Object.keys(scenarios))}\n`);
    return;
  }
  const client = require('ali-ons');
  await Promise.all(Object.keys(scenarios).map(name => play(name, process.argv[2], client)));
  await pause(200);
  process.exit(0); // the consumers go on for ever
}

main();
