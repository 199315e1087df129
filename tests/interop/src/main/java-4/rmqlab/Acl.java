package rmqlab;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.rocketmq.acl.common.AclClientRPCHook;
import org.apache.rocketmq.acl.common.Permission;
import org.apache.rocketmq.acl.common.SessionCredentials;
import org.apache.rocketmq.acl.plain.PlainAccessResource;
import org.apache.rocketmq.acl.plain.PlainAccessValidator;
import org.apache.rocketmq.acl.plain.RemoteAddressStrategy;
import org.apache.rocketmq.acl.plain.RemoteAddressStrategyFactory;
import org.apache.rocketmq.common.PlainAccessConfig;
import org.apache.rocketmq.remoting.common.RemotingHelper;
import org.apache.rocketmq.remoting.protocol.RemotingCommand;

/**
 * Asks the classes of ACL 1.0. JSON lines in, a line out for each, with "error" where they throw:
 *   {"op": "sign", "code", "ext", "body", "accessKey", "secretKey", "token"}  -> {"ext"}: what the client's hook sends
 *   {"op": "pattern", "pattern", "addresses"}   -> {"matches"}: of each address
 *   {"op": "permission", "text"}                -> {"permission"}
 *   {"op": "resources", "resources"}            -> {}: checkResourcePerms
 *   {"op": "rules", "files": {path: text}}      -> {}: the rules of the questions that follow, below an own home
 *   {"op": "check", "code", "ext", "body", "address", "accessKey", "secretKey"} -> {}: validates; signed where there is an accessKey here
 *   {"op": "update", "account"}, {"op": "delete", "accessKey"}, {"op": "white", "addresses", "file"} -> {"done", "file"}: plain_acl.yml afterwards
 *   {"op": "all"}                               -> {"config"}: getAllAclConfig
 */
public final class Acl {
    private static final List<Path> homes = new ArrayList<>();
    private static Path home;
    private static PlainAccessValidator validator;

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            Map<String, Object> answer = new TreeMap<>();
            try {
                answer(J.parse(line), answer);
            } catch (Throwable e) {
                answer.clear();
                answer.put("error", e.getMessage());
                answer.put("class", e.getClass().getSimpleName());
                answer.put("remark", RemotingHelper.exceptionSimpleDesc(e));
            }
            J.out(answer);
        }
        J.flush();
        for (Path old : homes) DumpStore.rm(old);
        Runtime.getRuntime().halt(0); // validators watch their files
    }

    private static void answer(JsonObject q, Map<String, Object> answer) throws Exception {
        switch (text(q, "op")) {
            case "sign":
                answer.put("ext", new TreeMap<>(signed(q).getExtFields()));
                break;
            case "pattern":
                answer.put("matches", matches(q));
                break;
            case "permission":
                answer.put("permission", Permission.parsePermFromString(text(q, "text")));
                break;
            case "resources":
                Permission.checkResourcePerms(list(q, "resources"));
                break;
            case "rules":
                rules(q.getAsJsonObject("files"));
                break;
            case "check":
                validator.validate(validator.parse(q.has("accessKey") ? signed(q) : request(q), text(q, "address")));
                break;
            case "update":
                answer.put("done", validator.updateAccessConfig(J.GSON.fromJson(q.get("account"), PlainAccessConfig.class)));
                answer.put("file", Files.readString(home.resolve("conf/plain_acl.yml")));
                break;
            case "delete":
                answer.put("done", validator.deleteAccessConfig(text(q, "accessKey")));
                answer.put("file", Files.readString(home.resolve("conf/plain_acl.yml")));
                break;
            case "white":
                String file = text(q, "file");
                answer.put("done", validator.updateGlobalWhiteAddrsConfig(list(q, "addresses"),
                    file == null || file.isEmpty() ? file : home.resolve(file).toString()));
                answer.put("file", Files.readString(home.resolve("conf/plain_acl.yml")));
                break;
            case "all":
                answer.put("config", J.parse(J.PLAIN.toJson(validator.getAllAclConfig())));
                break;
            default:
                throw new IllegalArgumentException(text(q, "op"));
        }
    }

    private static RemotingCommand request(JsonObject q) {
        RemotingCommand request = RemotingCommand.createRequestCommand(q.get("code").getAsInt(), null);
        if (!q.get("ext").isJsonNull()) {
            HashMap<String, String> ext = new HashMap<>();
            for (Map.Entry<String, JsonElement> e : q.getAsJsonObject("ext").entrySet()) ext.put(e.getKey(), e.getValue().getAsString());
            request.setExtFields(ext);
        }
        if (text(q, "body") != null) request.setBody(Base64.getDecoder().decode(text(q, "body")));
        return request;
    }

    private static RemotingCommand signed(JsonObject q) {
        RemotingCommand request = request(q);
        SessionCredentials credentials = new SessionCredentials(text(q, "accessKey"), text(q, "secretKey"));
        if (text(q, "token") != null) credentials.setSecurityToken(text(q, "token"));
        new AclClientRPCHook(credentials).doBeforeRequest("127.0.0.1:1", request);
        return request;
    }

    private static List<Boolean> matches(JsonObject q) {
        RemoteAddressStrategy strategy = new RemoteAddressStrategyFactory().getRemoteAddressStrategy(text(q, "pattern"));
        List<Boolean> matches = new ArrayList<>();
        for (String address : list(q, "addresses")) {
            PlainAccessResource resource = new PlainAccessResource();
            resource.setWhiteRemoteAddress(address);
            matches.add(strategy.match(resource));
        }
        return matches;
    }

    private static void rules(JsonObject files) throws Exception {
        home = Files.createTempDirectory("acl");
        homes.add(home);
        Files.createDirectories(home.resolve("conf/acl"));
        for (Map.Entry<String, JsonElement> e : files.entrySet()) {
            Path file = home.resolve(e.getKey());
            Files.createDirectories(file.getParent());
            Files.writeString(file, e.getValue().getAsString());
        }
        System.setProperty("rocketmq.home.dir", home.toString());
        validator = null; // where the rules are refused, so is what follows
        validator = new PlainAccessValidator();
    }

    private static String text(JsonObject q, String name) {
        return !q.has(name) || q.get(name).isJsonNull() ? null : q.get(name).getAsString();
    }

    private static List<String> list(JsonObject q, String name) {
        if (!q.has(name) || q.get(name).isJsonNull()) return null;
        List<String> texts = new ArrayList<>();
        for (JsonElement e : (JsonArray) q.get(name)) texts.add(e.getAsString());
        return texts;
    }

    private Acl() { }
}
