// What RocketMQ's Go client does with a cluster, one JSON line for each row.
//
//	rmqgo produce NAMESRV TOPIC COUNT          sync sends, a batch, one-way and asynchronous ones
//	rmqgo push NAMESRV TOPIC GROUP COUNT       a push consumer; every third message fails once
//	rmqgo orderly NAMESRV TOPIC GROUP COUNT    an orderly one
//	rmqgo sync NAMESRV TOPIC SIZE THREADS COUNT    how long sends take, each waited for
//	rmqgo async NAMESRV TOPIC SIZE WINDOW COUNT    as above, so many on their way
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
	"github.com/apache/rocketmq-client-go/v2/rlog"
)

type row map[string]any

var printing sync.Mutex

func tell(r row) {
	line, err := json.Marshal(r)
	must(err)
	printing.Lock()
	defer printing.Unlock()
	fmt.Println(string(line))
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	rlog.SetLogLevel("error")
	names := primitive.NamesrvAddr{os.Args[2]}
	count, err := strconv.Atoi(os.Args[len(os.Args)-1])
	must(err)
	switch os.Args[1] {
	case "produce":
		produce(names, os.Args[3], count)
	case "sync", "async":
		size, err := strconv.Atoi(os.Args[4])
		must(err)
		together, err := strconv.Atoi(os.Args[5])
		must(err)
		bench(names, os.Args[3], make([]byte, size), together, count, os.Args[1] == "sync")
	case "push", "orderly":
		push(names, os.Args[3], os.Args[4], count, os.Args[1] == "orderly")
	}
}

func message(topic string, n int, how string) *primitive.Message {
	m := primitive.NewMessage(topic, []byte(fmt.Sprintf("%s %d", how, n)))
	m.WithTag(fmt.Sprintf("t%d", n%2)).WithKeys([]string{fmt.Sprintf("k%d", n)}).WithProperty("how", how)
	return m
}

func produce(names primitive.NamesrvAddr, topic string, count int) {
	p, err := rocketmq.NewProducer(producer.WithNameServer(names), producer.WithGroupName("go_producer"), producer.WithRetry(2))
	must(err)
	must(p.Start())
	ctx := context.Background()
	for n := 0; n < count; n++ {
		r, err := p.SendSync(ctx, message(topic, n, "sync"))
		must(err)
		tell(row{"kind": "sync", "status": int(r.Status), "id": len(r.MsgID) > 0, "offsetId": len(r.OffsetMsgID)})
	}
	var batch []*primitive.Message
	for n := 0; n < count; n++ {
		batch = append(batch, message(topic, n, "batch"))
	}
	r, err := p.SendSync(ctx, batch...)
	must(err)
	tell(row{"kind": "batch", "status": int(r.Status)})
	var waiting sync.WaitGroup
	for n := 0; n < count; n++ {
		waiting.Add(1)
		must(p.SendAsync(ctx, func(_ context.Context, r *primitive.SendResult, err error) {
			must(err)
			tell(row{"kind": "async", "status": int(r.Status)})
			waiting.Done()
		}, message(topic, n, "async")))
	}
	waiting.Wait()
	for n := 0; n < count; n++ {
		must(p.SendOneWay(ctx, message(topic, n, "oneway")))
	}
	late := message(topic, 0, "late")
	late.WithDelayTimeLevel(1)
	r, err = p.SendSync(ctx, late)
	must(err)
	tell(row{"kind": "late", "status": int(r.Status)})
	time.Sleep(500 * time.Millisecond)
	must(p.Shutdown())
}

func bench(names primitive.NamesrvAddr, topic string, body []byte, together, count int, waits bool) {
	p, err := rocketmq.NewProducer(producer.WithNameServer(names), producer.WithGroupName("go_bench"), producer.WithRetry(0))
	must(err)
	must(p.Start())
	ctx := context.Background()
	made := func(n int) *primitive.Message {
		m := primitive.NewMessage(topic, body)
		return m.WithTag(fmt.Sprintf("t%d", n%100))
	}
	for n := 0; n < 500; n++ { // the connection, the route
		_, err := p.SendSync(ctx, made(n))
		must(err)
	}
	var waiting sync.WaitGroup
	begin := time.Now()
	if waits {
		for t := 0; t < together; t++ {
			waiting.Add(1)
			go func() {
				for n := 0; n < count/together; n++ {
					_, err := p.SendSync(ctx, made(n))
					must(err)
				}
				waiting.Done()
			}()
		}
	} else {
		window := make(chan bool, together)
		for n := 0; n < count; n++ {
			window <- true
			waiting.Add(1)
			must(p.SendAsync(ctx, func(_ context.Context, _ *primitive.SendResult, err error) {
				must(err)
				<-window
				waiting.Done()
			}, made(n)))
		}
	}
	waiting.Wait()
	tell(row{"rows": count / together * together, "seconds": time.Since(begin).Seconds()})
	must(p.Shutdown())
}

func push(names primitive.NamesrvAddr, topic, group string, count int, orderly bool) {
	c, err := rocketmq.NewPushConsumer(consumer.WithNameServer(names), consumer.WithGroupName(group),
		consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset), consumer.WithConsumerOrder(orderly))
	must(err)
	done := make(chan bool)
	var seen sync.Map
	consumed := 0
	var lock sync.Mutex
	must(c.Subscribe(topic, consumer.MessageSelector{}, func(_ context.Context, ms ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
		failed := false
		for _, m := range ms {
			body := string(m.Body)
			_, again := seen.LoadOrStore(body, true)
			fails := !again && !orderly && body[len(body)-1] == '3'
			tell(row{"kind": "received", "body": body, "tags": m.GetTags(), "keys": m.GetKeys(), "reconsumeTimes": m.ReconsumeTimes, "fails": fails})
			failed = failed || fails
			if !fails {
				lock.Lock()
				consumed++
				if consumed == count {
					close(done)
				}
				lock.Unlock()
			}
		}
		if failed {
			return consumer.ConsumeRetryLater, nil
		}
		return consumer.ConsumeSuccess, nil
	}))
	must(c.Start())
	select {
	case <-done:
	case <-time.After(50 * time.Second):
	}
	time.Sleep(300 * time.Millisecond)
	tell(row{"kind": "count", "consumed": consumed})
	must(c.Shutdown())
}
