package rmqlab;

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import org.apache.rocketmq.client.consumer.AllocateMessageQueueStrategy;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMachineRoomNearby;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragelyByCircle;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueByConfig;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueByMachineRoom;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueConsistentHash;
import org.apache.rocketmq.common.message.MessageQueue;

/**
 * How 4.9.4 shares queues out: Allocate SEED ROWS. A line for each random group:
 *   {"queues": [[topic, broker, id]], "members": [id], "rooms": [room], "virtualNodes": n, "shares": {strategy: [[number of queue] | error]}}
 * A strategy's shares are those of the members, each once, of a client that is none, and of one without a name. The rooms are those of MACHINE_ROOM; with MACHINE_ROOM_NEARBY a name's room is what stands before its first "@".
 */
public final class Allocate {
    private static final String[] ROOMS = {"east", "west", "north", "größe", " ", ""};

    public static void main(String[] args) {
        Random random = new Random(Long.parseLong(args[0]));
        for (int row = 0, rows = Integer.parseInt(args[1]); row < rows; row++) row(random);
        J.flush();
        Runtime.getRuntime().halt(0);
    }

    private static void row(Random random) {
        boolean inRooms = random.nextInt(3) > 0;
        List<MessageQueue> queues = queues(random, inRooms);
        List<String> members = members(random, inRooms);
        Set<String> rooms = new LinkedHashSet<>();
        for (int n = random.nextInt(4); n > 0; n--) rooms.add(room(random));
        int virtualNodes = random.nextInt(5) > 0 ? 10 : random.nextInt(40) - 2;
        List<String> asked = new ArrayList<>(new LinkedHashSet<>(members));
        asked.add("nobody");
        asked.add("");
        Map<String, Object> shares = new TreeMap<>();
        for (String name : new String[] {"AVG", "AVG_BY_CIRCLE", "CONFIG", "MACHINE_ROOM", "MACHINE_ROOM_NEARBY-AVG", "CONSISTENT_HASH"}) {
            List<Object> of = new ArrayList<>();
            for (String member : asked) of.add(share(name, member, queues, members, rooms, virtualNodes));
            shares.put(name, of);
        }
        List<Object> listed = new ArrayList<>();
        for (MessageQueue q : queues) listed.add(List.of(q.getTopic(), q.getBrokerName(), q.getQueueId()));
        J.out(J.map("queues", listed, "members", members, "rooms", rooms, "virtualNodes", virtualNodes, "shares", shares));
    }

    private static Object share(String name, String member, List<MessageQueue> queues, List<String> members, Set<String> rooms, int virtualNodes) {
        try {
            AllocateMessageQueueStrategy strategy = strategy(name, queues, rooms, virtualNodes);
            if (!strategy.getName().equals(name)) throw new IllegalStateException(strategy.getName());
            List<Integer> numbers = new ArrayList<>();
            for (MessageQueue q : strategy.allocate("g", member, queues, members)) numbers.add(queues.indexOf(q));
            return numbers;
        } catch (IllegalArgumentException e) {
            return e.getMessage();
        }
    }

    private static AllocateMessageQueueStrategy strategy(String name, List<MessageQueue> queues, Set<String> rooms, int virtualNodes) {
        switch (name) {
            case "AVG":
                return new AllocateMessageQueueAveragely();
            case "AVG_BY_CIRCLE":
                return new AllocateMessageQueueAveragelyByCircle();
            case "CONFIG":
                AllocateMessageQueueByConfig config = new AllocateMessageQueueByConfig();
                config.setMessageQueueList(queues.subList(0, queues.size() / 2));
                return config;
            case "MACHINE_ROOM":
                AllocateMessageQueueByMachineRoom machineRoom = new AllocateMessageQueueByMachineRoom();
                machineRoom.setConsumeridcs(new HashSet<>(rooms));
                return machineRoom;
            case "CONSISTENT_HASH":
                return new AllocateMessageQueueConsistentHash(virtualNodes);
            default:
                return new AllocateMachineRoomNearby(new AllocateMessageQueueAveragely(), new AllocateMachineRoomNearby.MachineRoomResolver() {
                    @Override
                    public String brokerDeployIn(MessageQueue queue) {
                        return before(queue.getBrokerName());
                    }

                    @Override
                    public String consumerDeployIn(String clientId) {
                        return before(clientId);
                    }
                });
        }
    }

    private static List<MessageQueue> queues(Random random, boolean inRooms) {
        Set<MessageQueue> queues = new HashSet<>();
        String topic = random.nextInt(8) == 0 ? "%RETRY%g" : "topic" + random.nextInt(3);
        int most = random.nextInt(41);
        for (int n = random.nextInt(5) + 1; n > 0; n--) {
            String broker = (inRooms ? usual(random) + "@" : "") + "broker-" + (char) ('a' + random.nextInt(26));
            if (random.nextInt(20) == 0) broker += new String[] {"@", "@@", "@c", "é"}[random.nextInt(4)];
            if (random.nextInt(40) == 0) broker = new String[] {"@", "east@", "east@@", "@x", "a"}[random.nextInt(5)];
            for (int id = random.nextInt(16); id >= 0 && queues.size() < most; id--) queues.add(new MessageQueue(topic, broker, id));
        }
        List<MessageQueue> sorted = new ArrayList<>(queues);
        Collections.sort(sorted);
        return sorted;
    }

    private static List<String> members(Random random, boolean inRooms) {
        List<String> members = new ArrayList<>();
        for (int n = random.nextInt(13); n > 0; n--) {
            String name = "10.0.0." + random.nextInt(256) + "@" + random.nextInt(65536);
            members.add(inRooms ? usual(random) + "@" + name : name);
        }
        if (!members.isEmpty() && random.nextInt(12) == 0) members.add(members.get(random.nextInt(members.size()))); // two of one name
        Collections.sort(members);
        return members;
    }

    private static String usual(Random random) {
        return random.nextInt(60) == 0 ? room(random) : ROOMS[random.nextInt(3)];
    }

    private static String room(Random random) {
        return ROOMS[random.nextInt(ROOMS.length)];
    }

    private static String before(String name) {
        int at = name.indexOf('@');
        return at < 0 ? null : name.substring(0, at);
    }
}
